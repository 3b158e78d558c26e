//! Bugs that other implementations had ([`cc::bbr3::Bbr3Fault`]), each with the test that fails on it.

use std::panic::catch_unwind;

use cc::{Algorithm, Bbr3Fault};

use crate::{control, losses, model, probe_bw, probe_rtt, startup};

/// The test of a fault; it panics if the controller has it.
fn check(fault: Bbr3Fault) -> fn(Algorithm) {
    match fault {
        Bbr3Fault::StickyLoss => losses::a_round_with_losses_cuts_the_bounds_once,
        Bbr3Fault::Headroom => probe_bw::down_ends_with_headroom_below_the_long_term_bound,
        Bbr3Fault::RenoBytes => {
            probe_bw::a_small_path_is_probed_after_as_many_rounds_as_it_holds_packets
        }
        Bbr3Fault::LossPackets => startup::one_packet_or_one_burst_does_not_end_startup,
        Bbr3Fault::StartupBounds => startup::startup_cuts_no_short_term_bound,
        Bbr3Fault::ProbeRemainder => probe_bw::the_rest_of_a_step_is_kept,
        Bbr3Fault::FilterEveryRound => model::the_bandwidth_filter_advances_once_per_cycle,
        Bbr3Fault::UnsetStamp => model::the_first_acknowledgement_makes_no_probe_rtt,
        Bbr3Fault::StalePacing => startup::the_first_rtt_corrects_the_initial_rate,
        Bbr3Fault::Resave => losses::the_state_to_go_back_to_is_saved_once_per_episode,
        Bbr3Fault::WindowJump => control::the_window_grows_by_what_is_acknowledged,
        Bbr3Fault::ForeignLoss => probe_bw::losses_from_before_the_probe_do_not_end_it,
        Bbr3Fault::AppLimitedPlateau => {
            startup::app_limited_rounds_neither_end_startup_nor_forget_the_flat_ones
        }
        Bbr3Fault::NoPlateau => probe_bw::a_plateau_ends_the_probe,
        Bbr3Fault::IdleMinRtt => probe_rtt::idle_time_does_not_replace_the_minimum_rtt,
        Bbr3Fault::Round32Bit => model::rounds_go_on_beyond_four_gigabytes,
        Bbr3Fault::NoMargin => control::the_pacing_rate_is_one_percent_below_the_path,
        Bbr3Fault::RecoveryCut => losses::recovery_does_not_cut_the_window,
        Bbr3Fault::LateCwndTest => probe_bw::the_long_term_bound_grows_by_doubling_steps,
        Bbr3Fault::MtuStale => control::a_new_datagram_size_moves_what_is_in_packets,
    }
}

#[test]
fn each_fault_fails_its_test() {
    for fault in Bbr3Fault::ALL {
        let outcome = catch_unwind(|| check(fault)(Algorithm::FaultyBbr3(fault)));
        assert!(outcome.is_err(), "{} goes unnoticed", fault.name());
    }
}

#[test]
fn the_real_controller_passes_them_all() {
    for fault in Bbr3Fault::ALL {
        check(fault)(Algorithm::Bbr3);
    }
}
