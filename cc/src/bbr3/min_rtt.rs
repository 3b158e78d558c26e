//! How long the path is: the smallest round-trip time, and when it has to be looked at again (ccwg-bbr-06 sections 5.3.4.3
//! and 5.5.7).
//!
//! Two stages: the smallest sample of the last 5 s says when a ProbeRTT is due; the smallest of the last 10 s is the
//! estimate. The estimate rises only when its 10 s are over, that is, after a ProbeRTT has looked.

use std::time::Duration;

use units::Timestamp;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct MinRtt {
    /// `BBR.min_rtt`.
    min_rtt: Option<Duration>,
    /// `BBR.min_rtt_stamp`.
    min_rtt_at: Timestamp,
    /// `BBR.probe_rtt_min_delay`.
    recent: Option<Duration>,
    /// `BBR.probe_rtt_min_stamp`.
    recent_at: Timestamp,
    /// `BBR.probe_rtt_expired`.
    is_probe_due: bool,
}

/// Section 2.16.2, `ProbeRTTInterval`. The draft wants this one to be the same for all flows, so that they look together.
pub(super) const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

/// Section 2.16.1, `MinRTTFilterLen`.
const MIN_RTT_FILTER_LENGTH: Duration = Duration::from_secs(10);

impl MinRtt {
    pub(super) const fn new() -> Self {
        Self {
            min_rtt: None,
            min_rtt_at: Timestamp::ZERO,
            recent: None,
            recent_at: Timestamp::ZERO,
            is_probe_due: false,
        }
    }

    /// Sets both clocks at the beginning of the connection. A clock that was never set would count as run out, and the
    /// first acknowledgement would find a ProbeRTT due.
    pub(super) fn start(&mut self, now: Timestamp) {
        self.min_rtt_at = now;
        self.recent_at = now;
    }

    /// `UpdateMinRTT`, for each event with acknowledgements.
    pub(super) fn on_acked(&mut self, now: Timestamp, sample: Option<Duration>) {
        self.is_probe_due = now > self.recent_at + PROBE_RTT_INTERVAL;
        // Deviation: "not above" where the draft has "below", as Linux does: on a perfectly steady path each sample equals
        // the smallest one and there is nothing to look for.
        let is_low = |rtt: Duration, than: Option<Duration>| than.is_none_or(|than| rtt <= than);
        if let Some(rtt) = sample
            && (self.is_probe_due || is_low(rtt, self.recent))
        {
            self.recent = Some(rtt);
            self.recent_at = now;
        }
        let is_old = now > self.min_rtt_at + MIN_RTT_FILTER_LENGTH;
        if let Some(recent) = self.recent
            && (is_old || is_low(recent, self.min_rtt))
        {
            self.min_rtt = Some(recent);
            self.min_rtt_at = self.recent_at;
        }
    }

    /// Notes that a ProbeRTT has ended: the next is due an interval from now.
    pub(super) fn on_probe_done(&mut self, now: Timestamp) {
        self.recent_at = now;
    }

    /// Notes that nothing was in flight for `span`.
    ///
    /// Deviation: the draft lets the 10 s run through idle time, so that the first sample after it, which may contain a
    /// radio's wake-up or a delayed acknowledgement, becomes the estimate (the draft's issue 109). Here the estimate does
    /// not age while nothing can be measured.
    pub(super) fn on_idle(&mut self, span: Duration) {
        self.min_rtt_at += span;
    }

    /// `BBR.min_rtt`; `None` before the first sample.
    pub(super) const fn get(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Whether the smallest recent sample was too old when the latest event came.
    pub(super) const fn is_probe_due(&self) -> bool {
        self.is_probe_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn ms(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    fn started() -> MinRtt {
        let mut model = MinRtt::new();
        model.start(at(1_000_000));
        model
    }

    #[test]
    fn the_first_sample_is_the_estimate_and_no_probe_is_due() {
        let mut model = started();
        model.on_acked(at(1_000_050), ms(50));
        assert_eq!(model.get(), ms(50));
        assert!(!model.is_probe_due());
    }

    #[test]
    fn a_probe_is_due_after_five_seconds_without_a_sample_as_low() {
        let mut model = started();
        model.on_acked(at(1_000_000), ms(50));
        model.on_acked(at(1_005_000), ms(51));
        assert!(!model.is_probe_due());
        model.on_acked(at(1_005_001), ms(51));
        assert!(model.is_probe_due());
        // The probe begins with the sample of this event; it is due no more, and the estimate is untouched.
        model.on_acked(at(1_005_002), ms(52));
        assert!(!model.is_probe_due());
        assert_eq!(model.get(), ms(50));
    }

    #[test]
    fn an_equal_sample_puts_the_probe_off() {
        let mut model = started();
        model.on_acked(at(1_000_000), ms(50));
        model.on_acked(at(1_004_000), ms(50));
        model.on_acked(at(1_008_999), ms(60));
        assert!(!model.is_probe_due());
    }

    #[test]
    fn the_estimate_rises_only_after_ten_seconds() {
        let mut model = started();
        model.on_acked(at(1_000_000), ms(50));
        for tenth in 1..=100 {
            model.on_acked(at(1_000_000 + tenth * 100), ms(80));
            assert_eq!(model.get(), ms(50));
        }
        model.on_acked(at(1_010_001), ms(80));
        assert_eq!(model.get(), ms(80));
    }

    #[test]
    fn idle_time_does_not_age_the_estimate() {
        let mut model = started();
        model.on_acked(at(1_000_000), ms(50));
        model.on_idle(Duration::from_secs(12));
        model.on_acked(at(1_012_300), ms(300));
        assert_eq!(model.get(), ms(50));
        assert!(
            model.is_probe_due(),
            "the controller skips it: idle time looked"
        );
    }
}
