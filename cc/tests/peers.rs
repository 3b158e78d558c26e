//! Cases that other stacks test, with their inputs. Where a peer follows RFC 8312, or a rule of its own, the expected value
//! is ours and the peer's is named.
//!
//! The numbers are those of the collection the cases come from; a number that is missing tests something that is not the
//! controller's here. Cases 10, 11 and 45 are beside the arithmetic they test (prr.rs, cubic_curve.rs) as well.

use std::time::Duration;

use cc::cubic::CubicGrowth;
use cc::loss_based::{Avoidance, CountedAck, LARGEST_WINDOW, initial_window};
use cc::testing::{Feedback, TestPath};
use cc::{Algorithm, LossBasedOptions, State};
use units::{ByteCount, Timestamp};

const PACKET: ByteCount = ByteCount::new(1_200);
const RTT: Duration = Duration::from_millis(100);
const INSTANT: Duration = Duration::from_nanos(1);

const BOTH: [Algorithm; 2] = [Algorithm::NEW_RENO, Algorithm::CUBIC];

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn bytes(count: u64) -> ByteCount {
    ByteCount::new(count)
}

fn path_with(algorithm: Algorithm, datagram: u64) -> TestPath {
    TestPath::with_controller(algorithm.build(bytes(datagram)))
}

fn counted(size: ByteCount, window: ByteCount, datagram: u64, rtt: Duration) -> CountedAck {
    CountedAck {
        size,
        window,
        limit: LARGEST_WINDOW,
        max_datagram_size: bytes(datagram),
        smoothed_rtt: rtt,
    }
}

#[track_caller]
fn assert_within(got: ByteCount, wanted: u64, off: u64) {
    assert!(
        got.as_u64().abs_diff(wanted) <= off,
        "{got}, wanted {wanted}"
    );
}

// cloudflare/quiche.

#[test]
fn case_01_slow_start_grows_by_what_is_acknowledged() {
    for (acked, window) in [(1, 13_200), (3, 15_600)] {
        let mut path = TestPath::new(Algorithm::CUBIC);
        path.send(10);
        path.wait(RTT);
        path.ack(acked);
        assert_eq!(path.window(), bytes(window));
    }
}

#[test]
fn case_02_a_loss_leaves_seven_tenths() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.send(10);
    path.wait(RTT);
    path.lose(1);
    assert_eq!(path.window(), bytes(8_400));
}

// The peer grows by whole packets and has 9,600 after six.
#[test]
fn case_03_after_the_loss_old_packets_do_nothing_and_new_ones_follow_the_curve() {
    let after_loss = || {
        let mut path = TestPath::new(Algorithm::CUBIC);
        path.send(10);
        path.wait(RTT);
        path.lose(1);
        path.ack(9);
        assert_eq!(path.window(), bytes(8_400));
        path.wait(INSTANT);
        path
    };
    let mut path = after_loss();
    for wanted in [8_491, 8_618, 8_785, 8_976, 9_182, 9_393] {
        path.fill_window();
        path.wait(RTT);
        path.ack_newest(1);
        assert_within(path.window(), wanted, 20);
    }
    let mut path = after_loss();
    path.send(6);
    path.wait(RTT);
    path.ack(6);
    assert_within(path.window(), 8_931, 20);
}

#[test]
fn case_08_a_rise_of_the_delay_slows_down_and_its_fall_resumes() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    let mut round = |rtt: Duration, rise: Duration| {
        let count = path.fill_window();
        path.wait(rtt);
        let mut entered = None;
        let before = path.window();
        for sample in 1..=count {
            let was = path.state();
            path.ack(1);
            if path.state() != was {
                entered = Some((sample, path.state(), path.window() - before));
            }
            path.wait(rise);
        }
        entered
    };
    assert_eq!(round(ms(50), Duration::ZERO), None);
    let (sample, state, _) = round(ms(100), ms(1)).expect("the delay has doubled");
    assert_eq!((sample, state), (8, State::ConservativeSlowStart));
    let (sample, state, grown) = round(ms(80), Duration::ZERO).expect("and has come down");
    assert_eq!((sample, state), (8, State::SlowStart));
    assert_eq!(grown, bytes(2_400));
}

#[test]
fn case_10_proportional_reduction_allows_half_a_packet_for_each() {
    let options = LossBasedOptions {
        prr: true,
        ..LossBasedOptions::DEFAULT
    };
    let mut path = path_with(Algorithm::NewReno(options), 1_000);
    path.send(10);
    path.wait(RTT);
    path.feedback(Feedback {
        lost: 1,
        acked: 1,
        ..Feedback::default()
    });
    assert_eq!(path.controller().ssthresh(), Some(bytes(5_000)));
    assert_eq!(path.window() - path.in_flight(), bytes(500));
    path.send_bytes(bytes(500));
    path.ack(1);
    assert_eq!(path.window() - path.in_flight(), bytes(500));
}

// aws/s2n-quic.

#[test]
fn case_11_the_plateau_of_2304_packets_is_twelve_seconds_away() {
    let mut growth = CubicGrowth::new(true);
    growth.on_reduction(bytes(2_764_800), bytes(1_935_360));
    assert_eq!(growth.plateau(), PACKET * 2_304);
    growth.on_acked(
        Timestamp::from_secs(1),
        &counted(bytes(1), bytes(1_935_360), 1_200, RTT),
    );
    let k = growth.time_to_plateau().expect("the epoch has begun");
    assert!(k.abs_diff(ms(12_000)) <= ms(1), "{k:?}");
}

#[test]
fn case_14_the_second_cut_aims_at_68000() {
    let mut growth = CubicGrowth::new(true);
    growth.on_reduction(bytes(100_000), bytes(70_000));
    growth.on_reduction(bytes(80_000), bytes(56_000));
    assert_eq!(growth.plateau(), bytes(68_000));
    assert_eq!(growth.prior_window(), bytes(80_000));
}

// The peer grows by +180.5 whatever the size acknowledged.
#[test]
fn case_15_on_the_concave_part_growth_is_by_bytes() {
    for (size, wanted) in [(1_000, 150), (1_200, 180)] {
        let mut growth = CubicGrowth::new(true);
        growth.on_reduction(bytes(2_764_800), bytes(1_935_360));
        let start = Timestamp::from_secs(1);
        growth.on_acked(start, &counted(bytes(1), bytes(1_935_360), 1_200, ms(200)));
        let window = bytes(2_400_000);
        let ack = counted(bytes(size), window, 1_200, ms(200));
        let step = growth.on_acked(start + ms(9_800), &ack) - window;
        assert_within(step, wanted, 1);
    }
}

#[test]
fn case_17_far_beyond_the_plateau_growth_is_half_of_what_is_acknowledged() {
    let mut growth = CubicGrowth::new(true);
    growth.on_reduction(bytes(2_764_800), bytes(1_935_360));
    let start = Timestamp::from_secs(1);
    let window = bytes(3_600_000);
    growth.on_acked(start, &counted(bytes(1), window, 1_200, RTT));
    let ack = counted(bytes(1_000), window, 1_200, RTT);
    assert_eq!(
        growth.on_acked(start + ms(125_800), &ack) - window,
        bytes(500)
    );
}

// The peer takes a window for used from one half (slow start) or three packets below (congestion avoidance). Ours is used
// when it is full; a sender that has more to send is never blamed, but grows to twice its flight at most.
#[test]
fn case_18_a_window_with_room_for_a_packet_is_not_used() {
    for count in 5..=10 {
        let mut path = TestPath::new(Algorithm::CUBIC);
        path.set_app_limited(true);
        path.send(count);
        path.wait(RTT);
        path.ack(count);
        let grown = path.window() > PACKET * 10;
        assert_eq!(grown, count == 10, "{count} of 10");
    }
}

#[test]
fn case_19_initial_windows_and_the_floor() {
    for (datagram, window) in [(1_200, 12_000), (2_000, 14_720), (8_000, 16_000)] {
        assert_eq!(initial_window(bytes(datagram)), bytes(window));
    }
    let controller = Algorithm::CUBIC.build(PACKET);
    assert_eq!(controller.minimum_window(), bytes(2_400));
}

#[test]
fn case_23_in_recovery_nothing_moves_until_a_packet_sent_after_entry_is_acknowledged() {
    for algorithm in BOTH {
        let mut path = TestPath::new(algorithm);
        path.send(10);
        path.wait(RTT);
        path.lose(1);
        let cut = path.window();
        path.lose(1);
        path.ack(1);
        assert_eq!((path.window(), path.state()), (cut, State::Recovery));
        path.wait(ms(1));
        path.send(1);
        path.wait(RTT);
        path.ack_newest(1);
        assert_eq!(path.state(), State::CongestionAvoidance);
    }
}

// The peer steps over the threshold by the whole acknowledgement: 10,100.
#[test]
fn case_24_slow_start_fills_up_to_the_threshold_and_the_rest_counts_after_it() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.send(10);
    path.wait(RTT);
    path.feedback(Feedback {
        lost: 10,
        is_persistent_congestion: true,
        ..Feedback::default()
    });
    path.wait(INSTANT);
    let ssthresh = path.controller().ssthresh().expect("set by the loss");
    for size in [2_400, ssthresh.as_u64() - 50 - 4_800, 100] {
        path.fill_window();
        path.send_bytes(bytes(size));
        path.wait(RTT);
        path.ack_newest(1);
    }
    assert_eq!(path.state(), State::CongestionAvoidance);
    // 50 bytes of credit, of which the plateau takes a small part.
    assert!(path.window() >= ssthresh && path.window() <= ssthresh + bytes(25));
}

// The peer's snapshot of whole packets per round trip, from the minimum window.
#[test]
fn case_27_from_the_floor_growth_is_at_least_the_peer_s() {
    let peer = [2, 2, 2, 2, 2, 3, 4, 4, 5, 5];
    let mut path = TestPath::new(Algorithm::CUBIC);
    for _ in 0..10 {
        path.wait(INSTANT);
        path.send(1);
        path.wait(RTT);
        path.lose(1);
    }
    assert_eq!(path.window(), PACKET * 2);
    path.wait(INSTANT);
    for (round, least) in peer.into_iter().enumerate() {
        assert!(path.window() >= PACKET * least, "round {round}");
        path.batch_round(RTT);
    }
}

// mozilla/neqo.

// The peer grows by 9/17 packet per round trip here. Without a cut the window is its own prior window, so alpha is 1.
#[test]
fn case_28_the_reno_friendly_region_without_a_cut() {
    let mut growth = CubicGrowth::new(true);
    let mut window = PACKET * 10;
    growth.on_slow_start_exit(window);
    let start = Timestamp::from_secs(1);
    for round in 0..10 {
        let count = u32::try_from(window.as_u64() / PACKET.as_u64()).expect("few");
        for n in 0..count {
            let now = start + RTT * round + RTT * n / count;
            window = growth.on_acked(now, &counted(PACKET, window, 1_200, RTT));
        }
    }
    assert_within(window, 19_300 * 12 / 10, 232);
}

#[test]
fn case_30_a_loss_after_one_acknowledgement_cuts_what_it_has_grown_to() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.send(10);
    path.wait(RTT);
    path.ack(1);
    path.lose(1);
    assert_eq!(path.window(), bytes(9_240));
}

// The peer lets six of ten grow the window; here it must be full.
#[test]
fn case_32_slow_start_with_half_a_window_does_not_grow() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.set_app_limited(true);
    for _ in 0..20 {
        path.send(5);
        path.wait(RTT);
        path.ack(5);
    }
    assert_eq!(path.window(), PACKET * 10);
    path.send(10);
    path.wait(RTT);
    path.ack(10);
    assert_eq!(path.window(), PACKET * 20);
}

#[test]
fn case_33_congestion_avoidance_two_packets_below_the_window_does_not_grow() {
    for algorithm in BOTH {
        let mut path = TestPath::new(algorithm);
        path.grow_to(40, RTT);
        path.cut(RTT);
        let before = path.window();
        let count = usize::try_from(before.as_u64() / PACKET.as_u64()).expect("few") - 2;
        path.set_app_limited(true);
        for _ in 0..50 {
            path.send(count);
            path.wait(RTT);
            path.ack(count);
        }
        assert_eq!(path.window(), before);
    }
}

// When it is persistent is the transport's to say; that it says so is what counts.
#[test]
fn case_35_many_losses_are_persistent_congestion_only_if_the_transport_says_so() {
    for (is_persistent_congestion, window) in [(false, 8_400), (true, 2_400)] {
        let mut path = TestPath::new(Algorithm::CUBIC);
        path.send(10);
        path.wait(Duration::from_secs(60));
        path.feedback(Feedback {
            lost: 10,
            is_persistent_congestion,
            ..Feedback::default()
        });
        assert_eq!(path.window(), bytes(window));
    }
}

#[test]
fn case_36_newreno_adds_three_packets_in_three_windows() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.grow_to(20, RTT);
    path.cut(RTT);
    path.batch_rounds(RTT, 3);
    assert_eq!(path.window(), PACKET * 13);
}

// microsoft/msquic, 1,232-byte datagrams.

#[test]
fn case_38_loss_and_mark_cut_alike_and_the_second_cut_aims_lower() {
    for is_mark in [false, true] {
        let mut path = path_with(Algorithm::CUBIC, 1_232);
        path.grow_to(20, RTT);
        path.send(2);
        path.wait(RTT);
        path.feedback(Feedback {
            lost: usize::from(!is_mark),
            acked: usize::from(is_mark),
            ce_count: u64::from(is_mark),
            ..Feedback::default()
        });
        assert_eq!(path.window(), bytes(17_248));
    }
    let mut growth = CubicGrowth::new(true);
    growth.on_reduction(bytes(36_960), bytes(25_872));
    growth.on_reduction(bytes(25_872), bytes(18_110));
    assert_eq!(growth.plateau(), bytes(21_991));
}

#[test]
fn case_39_the_floor_is_two_datagrams() {
    let controller = Algorithm::CUBIC.build(bytes(1_232));
    assert_eq!(controller.minimum_window(), bytes(2_464));
}

#[test]
fn case_40_a_datagram_grows_the_window_by_half_a_datagram_at_most() {
    let mut growth = CubicGrowth::new(true);
    growth.on_slow_start_exit(bytes(20_000));
    let start = Timestamp::from_secs(1);
    growth.on_acked(start, &counted(bytes(1), bytes(20_000), 1_232, RTT));
    let ack = counted(bytes(1_232), bytes(20_000), 1_232, RTT);
    let window = growth.on_acked(start + ms(1_000_000), &ack);
    assert_eq!(window, bytes(20_616));
}

// The peer has 1.25 s, in whole steps.
#[test]
fn case_41_from_three_datagrams_the_plateau_is_1_31_s_away() {
    let mut growth = CubicGrowth::new(true);
    growth.on_reduction(bytes(3_696), bytes(2_587));
    growth.on_acked(
        Timestamp::from_secs(1),
        &counted(bytes(1), bytes(2_587), 1_232, RTT),
    );
    let k = growth.time_to_plateau().expect("the epoch has begun");
    assert!(k.abs_diff(ms(1_310)) <= ms(1), "{k:?}");
}

#[test]
fn case_44_a_baseline_of_40_ms_46_enters_42_does_not_and_38_returns() {
    let round = |path: &mut TestPath, rtt: Duration| {
        let count = path.fill_window();
        path.wait(rtt);
        for _ in 0..count {
            path.ack(1);
        }
        path.state()
    };
    let mut path = path_with(Algorithm::CUBIC, 1_232);
    round(&mut path, ms(40));
    assert_eq!(round(&mut path, ms(42)), State::SlowStart);
    let mut path = path_with(Algorithm::CUBIC, 1_232);
    round(&mut path, ms(40));
    assert_eq!(round(&mut path, ms(46)), State::ConservativeSlowStart);
    assert_eq!(round(&mut path, ms(38)), State::SlowStart);
}

// google/quiche, one connection, 1,460-byte datagrams.

#[test]
fn case_48_every_acknowledgement_grows_the_window_and_a_window_of_them_by_a_packet() {
    let datagram = bytes(1_460);
    let start = datagram * 150;
    let mut window = start;
    let mut growth = CubicGrowth::new(true);
    growth.on_slow_start_exit(window);
    let mut now = Timestamp::from_secs(1);
    for _ in 0..150 {
        let before = window;
        window = growth.on_acked(now, &counted(datagram, window, 1_460, ms(350)));
        assert!(window > before);
        now += ms(1);
    }
    assert!(
        window - start >= datagram.scale(9, 10),
        "{}",
        window - start
    );
}

// The peer emulates two connections and reaches 553,632 B.
#[test]
fn case_50_one_acknowledgement_per_round_trip_adds_half_a_packet_at_most() {
    let datagram = bytes(1_460);
    let mut growth = CubicGrowth::new(true);
    let mut window = (datagram * 422).scale(7, 10);
    growth.on_reduction(datagram * 422, window);
    let mut now = Timestamp::from_secs(1);
    for _ in 0..40 {
        let before = window;
        window = growth.on_acked(now, &counted(datagram, window, 1_460, RTT));
        assert!(window - before <= datagram.scale(1, 2));
        now += RTT;
    }
    let k = growth.time_to_plateau().expect("the epoch has begun");
    assert!(k.abs_diff(ms(6_815)) <= ms(1), "{k:?}");
    assert!(window < datagram * 315, "{window}");
}

#[test]
fn case_51_after_100_s_of_silence_the_first_acknowledgement_adds_a_packet_at_most() {
    let mut path = TestPath::new(Algorithm::CUBIC);
    path.grow_to(100, RTT);
    path.cut(RTT);
    path.batch_rounds(RTT, 5);
    path.wait(Duration::from_secs(100));
    let before = path.window();
    path.fill_window();
    path.wait(RTT);
    path.ack(1);
    assert!(path.window() <= before + PACKET);
}

#[test]
fn case_53_a_probe_timeout_changes_nothing() {
    for algorithm in BOTH {
        let mut path = TestPath::new(algorithm);
        path.send(10);
        let now = path.now();
        path.controller_mut().on_pto(now);
        assert_eq!(path.window(), PACKET * 10);
        assert_eq!(path.state(), State::SlowStart);
    }
}

// The peer grows a window that was full by the first four of ten acknowledgements only, because after them it is no
// longer full. Here the flight as a whole has filled it.
#[test]
fn case_55_pairs_of_acknowledgements_in_slow_start() {
    // What is acknowledged grows older by the round, which HyStart++ would take for a queue.
    let mut path = TestPath::new(Algorithm::NewReno(LossBasedOptions::WITHOUT_HYSTART));
    for _ in 0..20 {
        path.fill_window();
        path.wait(RTT);
        path.ack(2);
    }
    assert_eq!(path.window(), PACKET * 50);
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.set_app_limited(true);
    path.send(10);
    path.wait(RTT);
    for _ in 0..5 {
        path.ack(2);
    }
    assert_eq!(path.window(), PACKET * 20);
}

// ngtcp2: n bytes acknowledged are n bytes of credit.
#[test]
fn odd_sizes_lose_no_credit() {
    let mut path = TestPath::new(Algorithm::NEW_RENO);
    path.grow_to(20, RTT);
    path.cut(RTT);
    let mut credit = 0;
    for size in [1, 1_199, 7, 600, 1_193, 2, 3_999, 4_998] {
        path.fill_window();
        path.send_bytes(bytes(size));
        path.wait(RTT);
        path.ack_newest(1);
        credit += size;
        assert_eq!(path.window(), PACKET * 10, "{credit} of 12,000");
    }
    assert_eq!(credit, 11_999);
    path.fill_window();
    path.send_bytes(bytes(1));
    path.wait(RTT);
    path.ack_newest(1);
    assert_eq!(path.window(), PACKET * 11);
}
