//! Bugs that other implementations of BBR had, to prove that the tests notice.
//!
//! Only builds with the feature `mutants` can have one; in all others [`Sabotage::is`] is the constant `false`. Each fault
//! changes the one thing that its line names.
//!
//! | name | what is changed | found in |
//! |---|---|---|
//! | `bbr3-sticky-loss` | the flag of a loss round is not cleared, so each round cuts | tquic |
//! | `bbr3-headroom` | the headroom is 85 % and not 15 % | tquic |
//! | `bbr3-reno-bytes` | the Reno bound compares rounds with bytes | the draft's pseudocode, quinn#2481, tquic |
//! | `bbr3-loss-packets` | lost packets are counted where ranges are meant | quinn#2481 |
//! | `bbr3-startup-bounds` | short-term bounds are cut in Startup | s2n-quic#1510, ccsim |
//! | `bbr3-probe-remainder` | the rest of the acknowledged bytes is dropped at each step of the long-term bound | cloudflare/quiche 27c7804b |
//! | `bbr3-filter-every-round` | the bandwidth filter advances every round of ProbeBW | s2n-quic#1543 |
//! | `bbr3-unset-stamp` | the clock of ProbeRTT is not set at the start | noq |
//! | `bbr3-stale-pacing` | the initial rate is not worked out anew with the first RTT | noq#800, s2n-quic#1524 |
//! | `bbr3-resave` | the state to go back to is saved at each loss round | the draft's text |
//! | `bbr3-window-jump` | the window is set to its goal, not grown | ccsim |
//! | `bbr3-foreign-loss` | a probe answers for packets sent before it | ccsim |
//! | `bbr3-app-limited-plateau` | samples short of data count for a plateau | lsquic, hysteria#1105 |
//! | `bbr3-no-plateau` | ProbeBW_UP ends at 1.25 BDP and never by a plateau | tquic |
//! | `bbr3-idle-min-rtt` | the estimate of the RTT ages while idle | the draft's issue 109 |
//! | `bbr3-round-32-bit` | the marker of a round has 32 bits | xquic#552 |
//! | `bbr3-no-margin` | the pacing rate has no margin | google and cloudflare quiche |
//! | `bbr3-recovery-cut` | the window falls to the bytes in flight when recovery begins | tquic, ngtcp2 |
//! | `bbr3-late-cwnd-test` | whether the window was full is asked after the acknowledged bytes left it | s2n-quic#1539 |
//! | `bbr3-mtu-stale` | a new datagram size is ignored | s2n-quic#2308 |

/// What is wrong.
#[cfg_attr(
    not(feature = "mutants"),
    expect(unreachable_pub, reason = "public where there are mutants")
)]
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Bbr3Fault {
    /// The flag of a loss round is not cleared.
    StickyLoss,
    /// The headroom is 85 %.
    Headroom,
    /// The Reno bound compares rounds with bytes.
    RenoBytes,
    /// Lost packets are counted where ranges are meant.
    LossPackets,
    /// Short-term bounds are cut in Startup.
    StartupBounds,
    /// The rest of the acknowledged bytes is dropped.
    ProbeRemainder,
    /// The bandwidth filter advances every round.
    FilterEveryRound,
    /// The clock of ProbeRTT is not set at the start.
    UnsetStamp,
    /// The initial pacing rate stays.
    StalePacing,
    /// The state to go back to is saved at each loss round.
    Resave,
    /// The window is set, not grown.
    WindowJump,
    /// A probe answers for packets sent before it.
    ForeignLoss,
    /// Samples short of data count for a plateau.
    AppLimitedPlateau,
    /// ProbeBW_UP never ends by a plateau.
    NoPlateau,
    /// The estimate of the RTT ages while idle.
    IdleMinRtt,
    /// The marker of a round has 32 bits.
    Round32Bit,
    /// The pacing rate has no margin.
    NoMargin,
    /// The window falls when recovery begins.
    RecoveryCut,
    /// Whether the window was full is asked too late.
    LateCwndTest,
    /// A new datagram size is ignored.
    MtuStale,
}

impl Bbr3Fault {
    /// All faults, in the order of the table above.
    #[cfg(feature = "mutants")]
    pub const ALL: [Self; 20] = [
        Self::StickyLoss,
        Self::Headroom,
        Self::RenoBytes,
        Self::LossPackets,
        Self::StartupBounds,
        Self::ProbeRemainder,
        Self::FilterEveryRound,
        Self::UnsetStamp,
        Self::StalePacing,
        Self::Resave,
        Self::WindowJump,
        Self::ForeignLoss,
        Self::AppLimitedPlateau,
        Self::NoPlateau,
        Self::IdleMinRtt,
        Self::Round32Bit,
        Self::NoMargin,
        Self::RecoveryCut,
        Self::LateCwndTest,
        Self::MtuStale,
    ];

    /// Returns the name by which the controller is chosen.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StickyLoss => "bbr3-sticky-loss",
            Self::Headroom => "bbr3-headroom",
            Self::RenoBytes => "bbr3-reno-bytes",
            Self::LossPackets => "bbr3-loss-packets",
            Self::StartupBounds => "bbr3-startup-bounds",
            Self::ProbeRemainder => "bbr3-probe-remainder",
            Self::FilterEveryRound => "bbr3-filter-every-round",
            Self::UnsetStamp => "bbr3-unset-stamp",
            Self::StalePacing => "bbr3-stale-pacing",
            Self::Resave => "bbr3-resave",
            Self::WindowJump => "bbr3-window-jump",
            Self::ForeignLoss => "bbr3-foreign-loss",
            Self::AppLimitedPlateau => "bbr3-app-limited-plateau",
            Self::NoPlateau => "bbr3-no-plateau",
            Self::IdleMinRtt => "bbr3-idle-min-rtt",
            Self::Round32Bit => "bbr3-round-32-bit",
            Self::NoMargin => "bbr3-no-margin",
            Self::RecoveryCut => "bbr3-recovery-cut",
            Self::LateCwndTest => "bbr3-late-cwnd-test",
            Self::MtuStale => "bbr3-mtu-stale",
        }
    }
}

/// The fault of one controller, if it has one.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Sabotage {
    #[cfg(feature = "mutants")]
    fault: Option<Bbr3Fault>,
}

impl Sabotage {
    #[cfg(feature = "mutants")]
    pub(super) const fn new(fault: Bbr3Fault) -> Self {
        Self { fault: Some(fault) }
    }

    #[cfg(feature = "mutants")]
    pub(super) const fn fault(self) -> Option<Bbr3Fault> {
        self.fault
    }

    #[cfg(feature = "mutants")]
    pub(super) fn is(self, fault: Bbr3Fault) -> bool {
        self.fault == Some(fault)
    }

    #[cfg(not(feature = "mutants"))]
    #[inline]
    pub(super) const fn is(self, _fault: Bbr3Fault) -> bool {
        false
    }
}
