//! BBRv3 (draft-ietf-ccwg-bbr-06) by the 62 lines of its checklist, its known bugs in other implementations, and the
//! acceptance figures that a single bottleneck can show.
//!
//! The checks of `model`, `startup`, `probe_bw`, `losses`, `probe_rtt` and `control` speak to the controller alone (`script`
//! makes up what a network would have said); those of `bottleneck` close the loop over one link (`link`). `faults` plays each
//! known bug against the check that must fail on it.
//!
//! | item | what | shown by |
//! |---|---|---|
//! | 1 | a flight begins both intervals | `cc::delivery`: `idle_time_is_in_neither_interval` |
//! | 2 | the snapshot of a packet | `cc::delivery`: `the_packet_sent_last_speaks_for_the_event`, `losses_since_the_packet_left_are_in_its_sample` |
//! | 3 | each packet counts once | `cc::delivery`: `a_steady_flow_is_measured_exactly`; quic-core: `raw` (ledger) |
//! | 4 | the newest packet speaks; the interval moves on with acknowledgements | `cc::delivery`: `of_packets_that_left_together_the_last_one_speaks`, `bunched_acknowledgements_are_capped_by_the_send_interval` |
//! | 5 | the longer interval | `cc::delivery`: `bunched_acknowledgements_are_capped_by_the_send_interval` |
//! | 6 | an interval below the minimum RTT | `cc::delivery`: `an_interval_below_the_smallest_rtt_gives_no_rate_but_counts`; `model::a_sample_without_a_rate_moves_rounds_and_bounds_but_no_bandwidth`, `model::a_sample_without_a_rate_is_no_round_of_a_plateau` |
//! | 7 | volumes in the sample | `cc::delivery`: `losses_since_the_packet_left_are_in_its_sample` |
//! | 8 | RTT of the newest packet, delay kept | `min_rtt` takes `latest_rtt`, which the stack gives only for a new largest packet: `model::the_minimum_rtt_rises_only_after_ten_seconds` |
//! | 9 | the mark "short of data" | `cc::delivery`: `the_app_limited_mark_lasts_until_more_than_the_marked_bytes_are_delivered`, `a_mark_on_an_empty_connection_still_marks` |
//! | 10 | when that is looked at | the driver's: it asks whenever the gate is open (quic-core `sender.rs`, `on_nothing_to_send`); no test here |
//! | 11 | receiver, window and pacing are no lack of data | `startup::a_flow_limited_by_the_receiver_leaves_startup_and_keeps_its_rate`; quic-core: `bbr3::a_flow_limited_by_the_receiver_leaves_startup` |
//! | 12 | bare acknowledgements do not count | quic-core: `sender.rs`, `counted_size`; no test here |
//! | 13 | a late packet is delivered once | `cc::delivery`: `a_late_packet_counts_as_delivered_once_and_makes_no_sample`; `model::a_late_packet_is_delivered_once` |
//! | 14 | one record per segmented send | allowed, not done: quic-core keeps one per packet |
//! | 15 | counters of 64 bits | `model::rounds_go_on_beyond_four_gigabytes`; `cc::delivery`: `counters_go_on_beyond_four_gigabytes` |
//! | 16 | when a round begins | `model::a_round_begins_with_a_packet_sent_after_the_one_before_began` |
//! | 17 | phases restart the round | `model::a_refill_lasts_a_whole_round_from_its_beginning`, `model::losses_are_digested_before_the_acknowledgements_of_their_event` |
//! | 18 | samples short of data | `model::an_app_limited_sample_counts_only_if_it_is_the_largest` |
//! | 19 | two cycles, once per cycle | `model::the_bandwidth_filter_advances_once_per_cycle`, `model::an_app_limited_round_after_a_probe_does_not_advance_the_filter` |
//! | 20 | two stages of the minimum RTT | `model::the_minimum_rtt_rises_only_after_ten_seconds`; `cc::bbr3::min_rtt` |
//! | 21 | the clock of the first stage | `model::the_first_acknowledgement_makes_no_probe_rtt` |
//! | 22 | aggregation | `cc::bbr3::extra_acked`; `model::bunched_acknowledgements_widen_the_window` |
//! | 23, 24 | the order of work | `model::losses_are_digested_before_the_acknowledgements_of_their_event` |
//! | 25 | losses only | `model::an_event_with_losses_only_changes_no_bandwidth_and_no_round` |
//! | 26 | Startup | `startup::startup_paces_at_four_ln_two_and_the_rate_only_rises`, `startup::startup_cuts_no_short_term_bound` |
//! | 27 | plateau | `startup::three_flat_rounds_end_startup`, `startup::app_limited_rounds_neither_end_startup_nor_forget_the_flat_ones` |
//! | 28 | losses in Startup | `startup::six_ranges_and_more_than_two_percent_in_a_round_end_startup`, `startup::fewer_ranges_or_a_lower_share_do_not_end_startup` |
//! | 29 | one loss, one burst | `startup::one_packet_or_one_burst_does_not_end_startup`; `bottleneck::one_drop_in_startup_changes_nothing` |
//! | 30 | Drain | `startup::drain_paces_at_half_until_the_path_holds_what_is_in_flight`, `startup::drain_ends_after_three_rounds_with_the_start_of_the_fourth`, `startup::the_long_term_bound_holds_in_drain` |
//! | 31 | limited by the receiver | `startup::a_flow_limited_by_the_receiver_leaves_startup_and_keeps_its_rate` |
//! | 32 | DOWN | `probe_bw::down_paces_at_nine_tenths`, `probe_bw::the_wait_is_two_to_three_seconds_and_differs_from_seed_to_seed` |
//! | 33 | to CRUISE | `probe_bw::down_ends_with_headroom_below_the_long_term_bound`, `probe_bw::down_ends_at_the_volume_of_the_largest_rate` |
//! | 34 | to REFILL | `probe_bw::a_small_path_is_probed_after_as_many_rounds_as_it_holds_packets`, `probe_bw::a_short_path_is_probed_after_sixty_two_or_sixty_three_rounds`, `probe_bw::down_goes_straight_to_refill_when_the_wait_is_over` |
//! | 35 | REFILL | `probe_bw::refill_drops_the_short_term_bounds_and_takes_one_round` |
//! | 36 | UP | `probe_bw::up_paces_at_five_quarters_and_allows_two_and_a_quarter_volumes` |
//! | 37 | growth of the long-term bound | `probe_bw::the_long_term_bound_grows_by_doubling_steps`, `probe_bw::the_rest_of_a_step_is_kept`, `probe_bw::the_long_term_bound_rests_while_it_does_not_limit` |
//! | 38 | safe acknowledgements | `probe_bw::a_safe_acknowledgement_raises_the_bound_to_what_was_in_flight` |
//! | 39 | a false plateau | `probe_bw::a_plateau_that_the_bound_makes_does_not_end_the_probe` |
//! | 40 | how UP ends | `probe_bw::a_plateau_ends_the_probe`, `probe_bw::growth_keeps_the_probe_going`, `probe_bw::after_too_high_a_probe_the_next_stops_at_the_bound_and_a_clean_one_follows_at_once`, `probe_bw::a_precautious_probe_with_losses_is_followed_by_a_wait` |
//! | 41 | short of data in REFILL and UP | `probe_bw::a_flow_short_of_data_passes_refill_and_stays_in_up` |
//! | 42 | too high, once, own packets | `probe_bw::losses_from_before_the_probe_do_not_end_it`, `probe_bw::a_probe_reacts_once_and_at_once`, `probe_bw::the_bound_after_a_probe_is_at_least_seven_tenths_of_the_target`, `probe_bw::an_app_limited_loss_ends_the_probe_and_sets_no_bound` |
//! | 43 | in flight at the loss | `cc::bbr3::volume_model`: `the_losses_reached_two_percent_within_the_packet`, `the_prefix_is_never_negative_and_never_above_the_packet`; `probe_bw::losses_at_the_threshold_do_not_end_the_probe` |
//! | 44 | the round of a loss | `losses::the_bounds_are_cut_one_round_after_the_loss_and_not_before` |
//! | 45 | one cut per round | `losses::a_round_with_losses_cuts_the_bounds_once`, `losses::many_losses_in_a_round_cut_once`, `losses::losses_in_refill_and_up_cut_no_short_term_bound` |
//! | 46 | recovery | `losses::recovery_does_not_cut_the_window`, `losses::a_timeout_leaves_a_small_window_that_comes_back_with_the_recovery` |
//! | 47 | timeout (persistent congestion) | `losses::a_timeout_leaves_a_small_window_that_comes_back_with_the_recovery`, `losses::a_timeout_with_nothing_in_flight_leaves_four_packets` |
//! | 48 | losses that were none | `losses::startup_goes_on_when_the_losses_that_ended_it_turn_up`, `losses::a_probe_begins_again_when_the_losses_that_ended_it_turn_up`, `losses::a_spurious_timeout_is_taken_back` |
//! | 49 | one snapshot per episode | `losses::the_state_to_go_back_to_is_saved_once_per_episode`, `losses::a_late_packet_of_an_earlier_episode_takes_nothing_back` |
//! | 50 | repairs are paced | the driver has one gate for all packets (quic-core: `pacing`); no test here |
//! | 51 | when ProbeRTT begins | `probe_rtt::five_seconds_without_an_rtt_as_low_begin_a_probe`, `probe_rtt::a_steady_path_is_never_probed`, `probe_rtt::startup_is_interrupted_and_resumed` |
//! | 52 | what it allows | `probe_rtt::half_the_volume_is_allowed_at_the_rate_of_the_path`, `probe_rtt::on_a_tiny_path_four_packets_are_allowed` |
//! | 53 | how it ends | `probe_rtt::the_time_runs_from_when_little_is_in_flight_for_200_ms_and_a_round`, `probe_rtt::a_round_alone_does_not_end_the_probe`, `probe_rtt::the_next_probe_is_due_five_seconds_after_the_end_of_this_one` |
//! | 54 | restart from idle | `probe_rtt::a_restart_from_idle_paces_at_the_rate_of_the_path_and_skips_the_probe`, `probe_rtt::a_restart_from_idle_paces_at_the_rate_of_the_path_however_the_silence_began`, `probe_rtt::a_restart_from_idle_ends_a_probe_that_is_over`, `probe_rtt::a_flow_that_has_data_does_not_restart_from_idle` |
//! | 55 | idle time and the minimum RTT | `probe_rtt::idle_time_does_not_replace_the_minimum_rtt`; `bottleneck::silence_brings_no_burst_no_probe_and_no_inflated_rtt` |
//! | 56 | the window | `control::the_window_grows_by_what_is_acknowledged`, `control::the_window_ends_at_two_volumes_also_for_a_flow_short_of_data`, `control::the_first_round_grows_the_window_whatever_the_model_says` |
//! | 57 | quantisation | `control::the_window_holds_a_quantum_on_a_fast_and_short_path`, `control::the_window_is_never_below_four_packets`, `probe_bw::up_paces_at_five_quarters_and_allows_two_and_a_quarter_volumes` |
//! | 58 | bounds | `control::the_long_term_bound_holds_in_every_state_of_the_cycle_and_headroom_in_cruise`, `control::the_short_term_bound_holds_in_cruise` |
//! | 59 | pacing and quantum | `control::the_pacing_rate_is_one_percent_below_the_path`, `control::the_quantum_is_a_millisecond_within_its_bounds`; `bottleneck::the_rate_in_each_phase_is_its_gain_times_the_path` |
//! | 60 | datagram size | `control::a_new_datagram_size_moves_what_is_in_packets`, `control::a_new_datagram_size_before_the_first_acknowledgement_gives_a_new_initial_window` |
//! | 61 | marks | `losses::marks_cut_the_bounds_like_losses_and_are_not_taken_back`, `losses::marks_above_two_percent_end_a_probe_and_below_do_not`, `losses::marks_alone_end_startup`, `losses::marks_end_startup_like_ranges_of_losses` |
//! | 62 | ACK_FREQUENCY | left out: quinn-proto 0.11 negotiates it for its own use and a controller has no say in it |

/// Makes a test of each check that a fault must fail, on the controller that has none.
macro_rules! on_the_real_controller {
    ($($check:ident),+ $(,)?) => {
        mod real {
            $(
                #[test]
                fn $check() {
                    super::$check(cc::Algorithm::Bbr3);
                }
            )+
        }
    };
}
use on_the_real_controller;

mod bottleneck;
mod control;
#[cfg(feature = "mutants")]
mod faults;
mod link;
mod losses;
mod model;
mod noise;
mod probe_bw;
mod probe_rtt;
mod script;
mod startup;
