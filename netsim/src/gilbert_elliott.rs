//! Loss in bursts: the chain of Gilbert and Elliott.
//!
//! ```text
//!              p per packet, or after Exp(mean good)
//!            +-----------------------------------+
//!            |                                   v
//!         [ good ]                            [ bad ]
//!     loses a share k                     loses a share h
//!            ^                                   |
//!            +-----------------------------------+
//!              r per packet, or after Exp(mean bad)
//! ```
//!
//! E. N. Gilbert, "Capacity of a burst-noise channel", 1960 (k = 0); E. O. Elliott, "Estimates of
//! error rates for codes on burst-noise channels", 1963. The letters are those of `tc netem loss
//! gemodel`, which takes p, r, 1-h and 1-k.
//!
//! A chain that moves with packets keeps its bursts at so many packets and stretches them in time
//! when the rate falls; one that moves with time does the reverse. Radio fades are of the second
//! kind.

use std::time::Duration;

use units::{Fraction, Timestamp, format_duration};

use crate::distributions::whole;
use crate::random::{Luck, RandomStream};

/// Loss that comes in bursts, from a chain with a good and a bad state that starts in the good one.
///
/// The loss share applied to a packet is that of the state *after* the move that the packet, or the
/// time since the last one, has caused: the state in which the channel is when the packet passes.
/// (netem applies that of the state before.) For a chain in time nothing else makes sense, and this
/// way both chains follow one rule. The long-run figures are the same either way.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BurstLoss {
    /// The chain moves once with each packet.
    PerPacket {
        /// p: probability of going from good to bad.
        to_bad: Fraction,
        /// r: probability of going from bad to good. With h = 1 and k = 0 the mean burst is 1/r
        /// packets. Not zero unless p is.
        to_good: Fraction,
        /// k: share lost in the good state.
        loss_in_good: Fraction,
        /// h: share lost in the bad state.
        loss_in_bad: Fraction,
    },
    /// The chain moves with time: each stay in a state lasts an exponentially distributed time.
    PerTime {
        /// Mean stay in the good state, from 1 ns to [`BurstLoss::LONGEST_STAY`].
        mean_good: Duration,
        /// Mean stay in the bad state, from 1 ns to [`BurstLoss::LONGEST_STAY`].
        mean_bad: Duration,
        /// k: share lost in the good state.
        loss_in_good: Fraction,
        /// h: share lost in the bad state.
        loss_in_bad: Fraction,
    },
}

impl BurstLoss {
    /// The longest mean stay in a state: one day.
    pub const LONGEST_STAY: Duration = Duration::from_secs(86_400);

    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong: a bad state without a way out, or a mean stay out of
    /// range.
    pub fn check(&self) -> Result<(), String> {
        match *self {
            Self::PerPacket {
                to_bad, to_good, ..
            } => {
                if to_good == Fraction::ZERO && to_bad != Fraction::ZERO {
                    return Err("burst loss: r is 0, so the bad state would never end".to_owned());
                }
                Ok(())
            }
            Self::PerTime {
                mean_good,
                mean_bad,
                ..
            } => {
                check_stay("good", mean_good)?;
                check_stay("bad", mean_bad)
            }
        }
    }

    /// The share of packets lost in the long run, (r k + p h) / (p + r), as a number from 0 to 1
    /// for reports; for a chain in time, that of packets sent evenly.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let bad = self.share_of_bad();
        (1.0 - bad) * self.loss_in(false).as_f64() + bad * self.loss_in(true).as_f64()
    }

    fn loss_in(&self, is_bad: bool) -> Fraction {
        let (good, bad) = match *self {
            Self::PerPacket {
                loss_in_good,
                loss_in_bad,
                ..
            }
            | Self::PerTime {
                loss_in_good,
                loss_in_bad,
                ..
            } => (loss_in_good, loss_in_bad),
        };
        if is_bad { bad } else { good }
    }

    /// The share of packets, or of time, in the bad state in the long run.
    fn share_of_bad(&self) -> f64 {
        // The rates of leaving a state are the inverse mean stays; only their ratio matters.
        let (into, out_of) = match *self {
            Self::PerPacket {
                to_bad, to_good, ..
            } => (to_bad.as_f64(), to_good.as_f64()),
            Self::PerTime {
                mean_good,
                mean_bad,
                ..
            } => (mean_bad.as_secs_f64(), mean_good.as_secs_f64()),
        };
        if into > 0.0 {
            into / (into + out_of)
        } else {
            0.0
        }
    }

    /// What `bad`, the probability of the bad state, has become after `elapsed`; not for a chain
    /// that moves with packets.
    fn after(&self, bad: f64, elapsed: Duration) -> f64 {
        match *self {
            Self::PerPacket { .. } => bad,
            Self::PerTime {
                mean_good,
                mean_bad,
                ..
            } => {
                // A two-state chain forgets with the sum of both rates of leaving:
                // P(t) = share + (P(0) - share) e^-t/T, 1/T = 1/good + 1/bad.
                let elapsed = elapsed.as_secs_f64();
                let decays = elapsed / mean_good.as_secs_f64() + elapsed / mean_bad.as_secs_f64();
                bad + (bad - self.share_of_bad()) * libm::expm1(-decays)
            }
        }
    }

    /// What `bad`, the probability of the bad state, becomes with one more packet; not for a chain
    /// that moves with time.
    fn with_packet(&self, bad: f64) -> f64 {
        match *self {
            Self::PerPacket {
                to_bad, to_good, ..
            } => (1.0 - bad) * to_bad.as_f64() + bad * (1.0 - to_good.as_f64()),
            Self::PerTime { .. } => bad,
        }
    }
}

fn check_stay(state: &str, mean: Duration) -> Result<(), String> {
    if (Duration::from_nanos(1)..=BurstLoss::LONGEST_STAY).contains(&mean) {
        return Ok(());
    }
    Err(format!(
        "burst loss: mean stay in the {state} state {} is out of range, from 1 ns to {}",
        format_duration(mean),
        format_duration(BurstLoss::LONGEST_STAY)
    ))
}

/// The running chain of a [`BurstLoss`].
///
/// Between packets nobody looks at the channel, so it has no state of its own, only a probability
/// of the bad one: certain just after a packet, less so as time goes by. A packet draws its state
/// from that, which for packets at any instants is exactly the chain with exponential stays, and
/// needs a fixed number of draws. It also makes a change of the settings exact, at any time.
#[derive(Clone, Debug)]
pub(crate) struct LossChain {
    config: BurstLoss,
    /// The probability of the bad state at `known_at`.
    bad: Chance,
    known_at: Timestamp,
}

impl LossChain {
    /// A chain in the good state at the beginning of a run.
    pub(crate) const fn new(config: BurstLoss) -> Self {
        Self {
            config,
            bad: Chance::NEVER,
            known_at: Timestamp::ZERO,
        }
    }

    /// Whether the packet that passes at `now` is lost. Packets pass in the order of time.
    pub(crate) fn is_lost(&mut self, now: Timestamp, luck: BurstLuck) -> bool {
        self.pass(now);
        let bad = Chance::of(self.config.with_packet(self.bad.as_f64()));
        let is_bad = bad.covers(luck.state);
        self.bad = if is_bad {
            Chance::ALWAYS
        } else {
            Chance::NEVER
        };
        luck.loss.is_within(self.config.loss_in(is_bad))
    }

    /// Goes on under other settings. The state, and the time up to `now`, remain as they were.
    pub(crate) fn reconfigure(&mut self, now: Timestamp, config: BurstLoss) {
        self.pass(now);
        self.config = config;
    }

    fn pass(&mut self, now: Timestamp) {
        let elapsed = now.saturating_since(self.known_at);
        self.bad = Chance::of(self.config.after(self.bad.as_f64(), elapsed));
        self.known_at = self.known_at.max(now);
    }
}

/// What decides about one packet, drawn before anything is known of it: two draws whatever the
/// settings, so that no setting shifts those of later packets.
#[derive(Copy, Clone, Debug)]
pub(crate) struct BurstLuck {
    state: u64,
    loss: Luck,
}

impl BurstLuck {
    pub(crate) fn draw(random: &mut RandomStream) -> Self {
        Self {
            state: random.u64(),
            loss: random.luck(),
        }
    }
}

/// A probability in units of 2^-64; the largest means certain.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Chance(u64);

impl Chance {
    const NEVER: Self = Self(0);
    const ALWAYS: Self = Self(u64::MAX);
    const PARTS: f64 = 18_446_744_073_709_551_616.0;

    fn of(probability: f64) -> Self {
        Self(whole(probability * Self::PARTS))
    }

    fn as_f64(self) -> f64 {
        self.0 as f64 / Self::PARTS
    }

    const fn covers(self, draw: u64) -> bool {
        draw < self.0 || self.0 == Self::ALWAYS.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStreams;
    use crate::validation_rows::row;

    fn ppb(parts: u32) -> Fraction {
        Fraction::from_ppb(parts).unwrap()
    }

    /// Mean loss 1 % in bursts of 4: r = 1/4, p = r / 99.
    fn bursts_of_four() -> BurstLoss {
        BurstLoss::PerPacket {
            to_bad: ppb(2_525_253),
            to_good: Fraction::from_percent(25).unwrap(),
            loss_in_good: Fraction::ZERO,
            loss_in_bad: Fraction::ONE,
        }
    }

    /// Fades of 10 ms, 1 % of the time.
    fn fades() -> BurstLoss {
        BurstLoss::PerTime {
            mean_good: Duration::from_millis(990),
            mean_bad: Duration::from_millis(10),
            loss_in_good: Fraction::ZERO,
            loss_in_bad: Fraction::ONE,
        }
    }

    /// The fate of `n` packets `spacing` apart.
    fn play(config: BurstLoss, n: u64, spacing: Duration, seed: u64) -> Vec<bool> {
        let mut random = RandomStreams::new(seed).stream("forward.burst");
        let mut chain = LossChain::new(config);
        let mut now = Timestamp::ZERO;
        (0..n)
            .map(|_| {
                now += spacing;
                chain.is_lost(now, BurstLuck::draw(&mut random))
            })
            .collect()
    }

    fn runs_of_losses(fates: &[bool]) -> Vec<usize> {
        fates
            .split(|is_lost| !is_lost)
            .map(<[bool]>::len)
            .filter(|length| *length > 0)
            .collect()
    }

    fn count(fates: &[bool]) -> f64 {
        fates.iter().filter(|is_lost| **is_lost).count() as f64
    }

    #[track_caller]
    fn assert_near(measured: f64, wanted: f64, tolerance: f64) {
        assert!(
            (measured - wanted).abs() <= tolerance * wanted,
            "{measured} is not {wanted} to within {tolerance}"
        );
    }

    /// The row "Gilbert-Elliott": 1 % to 2 %, mean run 4 to 2 %, geometric runs (chi-squared 99 %).
    ///
    /// One run of 10^6 packets holds 2,500 bursts, so its mean loss has a standard deviation of
    /// 2.6 % and its mean run one of 1.7 %: within the tolerance only by luck. Twenty runs bring
    /// them to 0.6 % and 0.4 %.
    #[test]
    fn bursts_have_the_length_and_share_asked_for() {
        let (mut lost, mut packets, mut runs) = (0.0, 0.0, Vec::new());
        for seed in 0..20 {
            let fates = play(
                bursts_of_four(),
                1_000_000,
                Duration::from_micros(100),
                seed,
            );
            packets += fates.len() as f64;
            lost += count(&fates);
            runs.extend(runs_of_losses(&fates));
        }
        let bursts = runs.len() as f64;
        assert_near(lost / packets, 0.01, 0.02);
        assert_near(lost / bursts, 4.0, 0.02);
        assert_near(bursts_of_four().mean_loss(), 0.01, 1e-6);

        // P(length = n) = r (1-r)^(n-1), with 24 and more in one class: 24 classes, 23 degrees of
        // freedom, of which the 99 % point is 41.6.
        let mut chi_squared = 0.0;
        for length in 1..=24_usize {
            let share = if length < 24 {
                0.25 * libm::pow(0.75, length as f64 - 1.0)
            } else {
                libm::pow(0.75, 23.0)
            };
            let seen = runs.iter().filter(|run| (**run).min(24) == length).count() as f64;
            chi_squared += (seen - bursts * share) * (seen - bursts * share) / (bursts * share);
        }
        assert!(chi_squared < 41.6, "{chi_squared}");

        let name = |what| format!("Gilbert-Elliott, burst 4, 20 runs of a million: {what}");
        let percent = format!("{:.4} %", lost / packets * 100.0);
        row("link model", &name("mean loss"), percent, "1 % +- 2 %");
        let mean = format!("{:.3}", lost / bursts);
        row("link model", &name("mean run"), mean, "4 +- 2 %");
        row(
            "link model",
            &name("chi-squared of the runs, geometric"),
            format!("{chi_squared:.2}"),
            "below 41.6, the 99 % point",
        );
    }

    #[test]
    fn both_states_lose_their_own_share() {
        // A third of the packets is in the bad state: (2/3) 3 % + (1/3) 60 % = 22 %.
        let config = BurstLoss::PerPacket {
            to_bad: Fraction::from_percent(10).unwrap(),
            to_good: Fraction::from_percent(20).unwrap(),
            loss_in_good: Fraction::from_percent(3).unwrap(),
            loss_in_bad: Fraction::from_percent(60).unwrap(),
        };
        assert_near(config.mean_loss(), 0.22, 1e-9);
        let fates = play(config, 1_000_000, Duration::from_millis(1), 1);
        assert_near(count(&fates) / 1e6, 0.22, 0.02);
    }

    #[test]
    fn stays_in_time_do_not_depend_on_the_packet_rate() {
        assert_near(fades().mean_loss(), 0.01, 1e-9);
        for spacing in [1_000, 250] {
            // 5,000 s: 5,000 fades. Their total has a standard deviation of 2 %, their mean of
            // 1.4 %.
            let fates = play(
                fades(),
                5_000_000_000 / spacing,
                Duration::from_micros(spacing),
                3,
            );
            assert_near(count(&fates) / fates.len() as f64, 0.01, 0.06);
            let runs = runs_of_losses(&fates);
            let spacing = spacing as f64 / 1e6;
            // Seen at intervals s a stay of mean 10 ms lasts s / P(leave within s).
            let leave = 0.99 * -libm::expm1(-spacing / 0.0099);
            let mean_run = count(&fates) / runs.len() as f64;
            assert_near(mean_run * leave, 1.0, 0.05);
        }
    }

    #[test]
    fn both_rates_of_leaving_drive_the_chain_in_time() {
        let even = BurstLoss::PerTime {
            mean_good: Duration::from_millis(10),
            mean_bad: Duration::from_millis(10),
            loss_in_good: Fraction::ZERO,
            loss_in_bad: Fraction::ONE,
        };
        let fates = play(even, 1_000_000, Duration::from_millis(5), 1);
        let changes = fates.windows(2).filter(|pair| pair[0] != pair[1]).count();
        // After 5 ms the other state has the probability (1 - e^-(5/10 + 5/10)) / 2 = 0.316; the
        // standard deviation is 0.15 % of it.
        assert_near(changes as f64 / 1e6, 0.316_06, 0.01);
    }

    #[test]
    fn a_long_silence_forgets_the_state() {
        let mut random = RandomStreams::new(1).stream("forward.burst");
        let mut lost = 0;
        for _ in 0..100_000 {
            let mut chain = LossChain::new(fades());
            chain.bad = Chance::ALWAYS;
            let now = Timestamp::from_secs(1_000);
            lost += i32::from(chain.is_lost(now, BurstLuck::draw(&mut random)));
        }
        // 1 % of 100,000, with a standard deviation of 31.
        assert!((880..1_120).contains(&lost), "{lost}");
    }

    #[test]
    fn the_state_is_the_one_after_the_move() {
        let certain = BurstLoss::PerPacket {
            to_bad: Fraction::ONE,
            to_good: Fraction::ONE,
            loss_in_good: Fraction::ZERO,
            loss_in_bad: Fraction::ONE,
        };
        let fates = play(certain, 4, Duration::ZERO, 1);
        assert_eq!(fates, [true, false, true, false]);
    }

    #[test]
    fn settings_do_not_shift_the_draws() {
        let mut streams: Vec<_> = (0..3)
            .map(|_| RandomStreams::new(9).stream("forward.burst"))
            .collect();
        let never = BurstLoss::PerPacket {
            to_bad: Fraction::ZERO,
            to_good: Fraction::ZERO,
            loss_in_good: Fraction::ZERO,
            loss_in_bad: Fraction::ZERO,
        };
        for (random, config) in streams.iter_mut().zip([bursts_of_four(), fades(), never]) {
            let mut chain = LossChain::new(config);
            for packet in 0..1_000 {
                chain.is_lost(Timestamp::from_millis(packet), BurstLuck::draw(random));
            }
        }
        let next: Vec<u64> = streams.iter_mut().map(RandomStream::u64).collect();
        assert!(next.iter().all(|draw| *draw == next[0]), "{next:?}");
    }

    #[test]
    fn the_same_seed_loses_the_same_packets() {
        let spacing = Duration::from_micros(700);
        assert_eq!(
            play(fades(), 50_000, spacing, 5),
            play(fades(), 50_000, spacing, 5)
        );
        assert_ne!(
            play(fades(), 50_000, spacing, 5),
            play(fades(), 50_000, spacing, 6)
        );
    }

    #[test]
    fn a_change_keeps_the_state() {
        let stuck = |to_bad| BurstLoss::PerPacket {
            to_bad,
            to_good: ppb(1),
            loss_in_good: Fraction::ZERO,
            loss_in_bad: Fraction::ONE,
        };
        let mut random = RandomStreams::new(1).stream("forward.burst");
        let mut chain = LossChain::new(stuck(Fraction::ONE));
        assert!(chain.is_lost(Timestamp::ZERO, BurstLuck::draw(&mut random)));
        chain.reconfigure(Timestamp::ZERO, stuck(Fraction::ZERO));
        assert!(chain.is_lost(Timestamp::ZERO, BurstLuck::draw(&mut random)));
        // From stays in time to moves per packet, at the instant of the last packet.
        chain.reconfigure(Timestamp::ZERO, fades());
        chain.reconfigure(Timestamp::ZERO, stuck(Fraction::ZERO));
        assert!(chain.is_lost(Timestamp::from_secs(9), BurstLuck::draw(&mut random)));
    }

    #[test]
    fn senseless_settings_are_refused_in_one_line() {
        let no_way_out = BurstLoss::PerPacket {
            to_bad: ppb(1),
            to_good: Fraction::ZERO,
            loss_in_good: Fraction::ZERO,
            loss_in_bad: Fraction::ONE,
        };
        assert_eq!(
            no_way_out.check().unwrap_err(),
            "burst loss: r is 0, so the bad state would never end"
        );
        let no_stay = BurstLoss::PerTime {
            mean_good: Duration::from_secs(1),
            mean_bad: Duration::ZERO,
            loss_in_good: Fraction::ZERO,
            loss_in_bad: Fraction::ONE,
        };
        assert_eq!(
            no_stay.check().unwrap_err(),
            "burst loss: mean stay in the bad state 0 s is out of range, from 1 ns to 86400 s"
        );
        assert_eq!(bursts_of_four().check(), Ok(()));
        assert_eq!(fades().check(), Ok(()));
    }
}
