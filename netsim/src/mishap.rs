//! Single packets that fare unlike the others: late, twice, or damaged.

use std::time::Duration;

use units::{Fraction, format_duration};

use crate::random::{Luck, RandomStream};

/// What arrives of a packet that [is corrupt](crate::Packet::is_corrupt): one bit of its last byte is another. QUIC's packet
/// protection covers it (RFC 9001 section 5.3); for UDP the damage is one that its checksum missed.
pub fn damage(payload: &mut [u8]) {
    if let Some(last) = payload.last_mut() {
        *last ^= 1;
    }
}

/// Shares of packets that are held back, doubled and damaged, each independently of the others and
/// of all other packets. The default is none.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Mishaps {
    /// Share of packets that propagate `reorder_delay` longer. Those that leave meanwhile overtake
    /// them, and they overtake none: order is not restored for them.
    pub reorder: Fraction,
    /// How much longer, at most [`Mishaps::LONGEST_DELAY`].
    pub reorder_delay: Duration,
    /// Share of packets of which a copy follows at once.
    pub duplicate: Fraction,
    /// Share of packets that arrive damaged: see [`crate::Packet::is_corrupt`]. A copy is damaged
    /// if the packet is.
    pub corrupt: Fraction,
}

impl Mishaps {
    /// The longest delay that is accepted: one minute.
    pub const LONGEST_DELAY: Duration = Duration::from_secs(60);

    /// Whether the settings make sense.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong: a delay that is too long, or one of zero for packets that
    /// are to be late.
    pub fn check(&self) -> Result<(), String> {
        if self.reorder_delay > Self::LONGEST_DELAY {
            return Err(format!(
                "reordering: delay {} is too long, at most {}",
                format_duration(self.reorder_delay),
                format_duration(Self::LONGEST_DELAY)
            ));
        }
        if self.reorder != Fraction::ZERO && self.reorder_delay.is_zero() {
            return Err("reordering: a delay of 0 puts nothing out of order".to_owned());
        }
        Ok(())
    }

    /// What happens to the packet with this luck.
    pub(crate) fn of(&self, luck: MishapLuck) -> Mishap {
        Mishap {
            extra_delay: luck
                .reorder
                .is_within(self.reorder)
                .then_some(self.reorder_delay),
            is_duplicated: luck.duplicate.is_within(self.duplicate),
            is_corrupted: luck.corrupt.is_within(self.corrupt),
        }
    }
}

/// What happens to one packet.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Mishap {
    /// Propagates this much longer, and is not kept in order.
    pub(crate) extra_delay: Option<Duration>,
    /// A copy follows at once, with the same size, delay and damage.
    pub(crate) is_duplicated: bool,
    /// Arrives damaged.
    pub(crate) is_corrupted: bool,
}

/// What decides about one packet, drawn before anything is known of it: three draws whatever the
/// settings, so that no setting shifts those of later packets.
#[derive(Copy, Clone, Debug)]
pub(crate) struct MishapLuck {
    reorder: Luck,
    duplicate: Luck,
    corrupt: Luck,
}

impl MishapLuck {
    pub(crate) fn draw(random: &mut RandomStream) -> Self {
        Self {
            reorder: random.luck(),
            duplicate: random.luck(),
            corrupt: random.luck(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStreams;
    use crate::validation_rows::row;

    fn all() -> Mishaps {
        Mishaps {
            reorder: Fraction::from_percent(1).unwrap(),
            reorder_delay: Duration::from_millis(5),
            duplicate: Fraction::from_percent(2).unwrap(),
            corrupt: Fraction::from_percent(5).unwrap(),
        }
    }

    fn play(config: Mishaps, seed: u64) -> Vec<Mishap> {
        let mut random = RandomStreams::new(seed).stream("forward.mishap");
        (0..1_000_000)
            .map(|_| config.of(MishapLuck::draw(&mut random)))
            .collect()
    }

    #[track_caller]
    fn assert_share(count: usize, share: f64) -> f64 {
        // The tolerance of the row "Bernoulli": z < 4 for 10^6 packets.
        let sigma = (1e6 * share * (1.0 - share)).sqrt();
        let z = (count as f64 - 1e6 * share) / sigma;
        assert!(
            z.abs() < 4.0,
            "{count} is {z} standard deviations off {share}"
        );
        z
    }

    #[test]
    fn each_share_is_met_and_they_are_independent() {
        let mishaps = play(all(), 1);
        let count = |meets: fn(&Mishap) -> bool| mishaps.iter().filter(|m| meets(m)).count();
        let shares = [
            ("reordered", count(|m| m.extra_delay.is_some()), 0.01),
            ("duplicated", count(|m| m.is_duplicated), 0.02),
            ("corrupted", count(|m| m.is_corrupted), 0.05),
            (
                "reordered and duplicated",
                count(|m| m.extra_delay.is_some() && m.is_duplicated),
                0.000_2,
            ),
            (
                "duplicated and corrupted",
                count(|m| m.is_duplicated && m.is_corrupted),
                0.001,
            ),
            (
                "reordered and corrupted",
                count(|m| m.extra_delay.is_some() && m.is_corrupted),
                0.000_5,
            ),
        ];
        for (what, count, share) in shares {
            let z = assert_share(count, share);
            row(
                "link model",
                &format!("Bernoulli, mishaps, a million packets: {what}"),
                format!("{count}, z = {z:.2}"),
                format!("{:.2} %, z below 4", share * 100.0),
            );
        }
        assert!(
            mishaps
                .iter()
                .filter_map(|m| m.extra_delay)
                .all(|delay| delay == Duration::from_millis(5))
        );
    }

    /// The runs test of the row "Bernoulli": a share p in n packets changes sides 2 n p (1-p)
    /// times, with a variance of 4 n p (1-p) (1 - 3 p (1-p)) to first order; p > 0.001 is |z| <
    /// 3.29.
    #[test]
    fn mishaps_do_not_come_in_bursts() {
        let mishaps = play(all(), 2);
        let changes = mishaps
            .windows(2)
            .filter(|pair| pair[0].is_corrupted != pair[1].is_corrupted)
            .count();
        let spread: f64 = 0.05 * 0.95;
        let sigma = (4.0 * 1e6 * spread * (1.0 - 3.0 * spread)).sqrt();
        let z = (changes as f64 - 2.0 * 1e6 * spread) / sigma;
        assert!(z.abs() < 3.29, "{changes}: {z}");
    }

    #[test]
    fn each_packet_takes_three_draws() {
        let mut random = RandomStreams::new(1).stream("forward.mishap");
        let mut counted = random.clone();
        for _ in 0..100 {
            MishapLuck::draw(&mut random);
        }
        for _ in 0..300 {
            counted.luck();
        }
        assert_eq!(random.u64(), counted.u64());
    }

    #[test]
    fn one_share_does_not_touch_the_others() {
        let mut only_corrupt = Mishaps {
            corrupt: all().corrupt,
            ..Mishaps::default()
        };
        let corrupted = |config| {
            let mishaps = play(config, 3);
            mishaps.iter().map(|m| m.is_corrupted).collect::<Vec<_>>()
        };
        assert_eq!(corrupted(only_corrupt), corrupted(all()));
        only_corrupt.corrupt = Fraction::ZERO;
        assert!(
            play(only_corrupt, 3)
                .iter()
                .all(|m| *m == Mishap::default())
        );
    }

    #[test]
    fn the_same_seed_strikes_the_same_packets() {
        assert_eq!(play(all(), 5), play(all(), 5));
        assert_ne!(play(all(), 5), play(all(), 6));
    }

    #[test]
    fn senseless_settings_are_refused_in_one_line() {
        let long = Mishaps {
            reorder_delay: Duration::from_secs(61),
            ..all()
        };
        assert_eq!(
            long.check().unwrap_err(),
            "reordering: delay 61 s is too long, at most 60 s"
        );
        let none = Mishaps {
            reorder_delay: Duration::ZERO,
            ..all()
        };
        assert_eq!(
            none.check().unwrap_err(),
            "reordering: a delay of 0 puts nothing out of order"
        );
        assert_eq!(all().check(), Ok(()));
        assert_eq!(Mishaps::default().check(), Ok(()));
    }
}
