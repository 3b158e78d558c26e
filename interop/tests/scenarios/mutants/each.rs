//! The mutants of each scenario miss what they name. Those that take long are played with the slow tests only.

use super::mutants_fail;
use crate::bench::is_slow;

#[test]
fn mutants_of_min_cwnd_trap_miss_its_bands() {
    mutants_fail("min-cwnd-trap");
}

#[test]
fn mutants_of_min_cwnd_trap_scripted_miss_its_bands() {
    mutants_fail("min-cwnd-trap-scripted");
}

#[test]
fn mutants_of_loss_phase_30pct_2s_miss_its_bands() {
    mutants_fail("loss-phase-30pct-2s");
}

#[test]
fn mutants_of_clean_20m_40ms_miss_its_bands() {
    mutants_fail("clean-20m-40ms");
}

#[test]
fn mutants_of_fct_ladder_miss_its_bands() {
    mutants_fail("fct-ladder");
}

#[test]
fn mutants_of_rand_loss_1pct_miss_its_bands() {
    mutants_fail("rand-loss-1pct");
}

#[test]
fn mutants_of_rate_step_miss_its_bands() {
    mutants_fail("rate-step");
}

#[test]
fn mutants_of_clean_100m_40ms_miss_its_bands() {
    if is_slow("mutants_of_clean_100m_40ms_miss_its_bands") {
        mutants_fail("clean-100m-40ms");
    }
}

#[test]
fn mutants_of_bufferbloat_50m_30ms_miss_its_bands() {
    if is_slow("mutants_of_bufferbloat_50m_30ms_miss_its_bands") {
        mutants_fail("bufferbloat-50m-30ms");
    }
}

#[test]
fn mutants_of_ge_burst_1pct_miss_its_bands() {
    mutants_fail("ge-burst-1pct");
}

#[test]
fn mutants_of_policer_10m_24k_miss_its_bands() {
    mutants_fail("policer-10m-24k");
}

#[test]
fn mutants_of_mvno_policer_miss_its_bands() {
    mutants_fail("mvno-policer");
}

#[test]
fn mutants_of_mvno_lossy_miss_its_bands() {
    mutants_fail("mvno-lossy");
}

#[test]
fn mutants_of_mvno_lossy_proxy_miss_its_bands() {
    mutants_fail("mvno-lossy-proxy");
}

#[test]
fn mutants_of_loss_phase_mid_miss_its_bands() {
    mutants_fail("loss-phase-mid");
}

#[test]
fn mutants_of_blackout_2s_miss_its_bands() {
    mutants_fail("blackout-2s");
}

#[test]
fn mutants_of_rate_up_x10_miss_its_bands() {
    if is_slow("mutants_of_rate_up_x10_miss_its_bands") {
        mutants_fail("rate-up-x10");
    }
}

#[test]
fn mutants_of_aqm_codel_20ms_miss_its_bands() {
    mutants_fail("aqm-codel-20ms");
}

#[test]
fn mutants_of_aqm_codel_100ms_miss_its_bands() {
    mutants_fail("aqm-codel-100ms");
}

#[test]
fn mutants_of_intra_fair_miss_its_bands() {
    if is_slow("mutants_of_intra_fair_miss_its_bands") {
        mutants_fail("intra-fair");
    }
}

#[test]
fn mutants_of_two_way_miss_its_bands() {
    if is_slow("mutants_of_two_way_miss_its_bands") {
        mutants_fail("two-way");
    }
}

#[test]
fn mutants_of_rtt_step_up_miss_its_bands() {
    mutants_fail("rtt-step-up");
}

#[test]
fn mutants_of_wifi_jitter_walk_miss_its_bands() {
    mutants_fail("wifi-jitter-walk");
}

#[test]
fn mutants_of_late_joiner_miss_its_bands() {
    if is_slow("mutants_of_late_joiner_miss_its_bands") {
        mutants_fail("late-joiner");
    }
}

#[test]
fn mutants_of_ack_loss_10pct_miss_its_bands() {
    mutants_fail("ack-loss-10pct");
}

#[test]
fn mutants_of_ack_loss_50pct_miss_its_bands() {
    mutants_fail("ack-loss-50pct");
}

#[test]
fn mutants_of_ack_thin_10_miss_its_bands() {
    mutants_fail("ack-thin-10");
}

#[test]
fn mutants_of_ack_thin_32_miss_its_bands() {
    mutants_fail("ack-thin-32");
}

#[test]
fn mutants_of_ack_slots_20ms_miss_its_bands() {
    mutants_fail("ack-slots-20ms");
}

#[test]
fn mutants_of_ecn_codel_miss_its_bands() {
    if is_slow("mutants_of_ecn_codel_miss_its_bands") {
        mutants_fail("ecn-codel");
    }
}

#[test]
fn mutants_of_fairness_miss_its_bands() {
    if is_slow("mutants_of_fairness_miss_its_bands") {
        mutants_fail("fairness");
    }
}

#[test]
fn mutants_of_handover_miss_its_bands() {
    if is_slow("mutants_of_handover_miss_its_bands") {
        mutants_fail("handover");
    }
}

#[test]
fn mutants_of_reorder_1pct_miss_its_bands() {
    if is_slow("mutants_of_reorder_1pct_miss_its_bands") {
        mutants_fail("reorder-1pct");
    }
}

#[test]
fn mutants_of_aqm_pie_20ms_miss_its_bands() {
    if is_slow("mutants_of_aqm_pie_20ms_miss_its_bands") {
        mutants_fail("aqm-pie-20ms");
    }
}

#[test]
fn mutants_of_aqm_pie_100ms_miss_its_bands() {
    if is_slow("mutants_of_aqm_pie_100ms_miss_its_bands") {
        mutants_fail("aqm-pie-100ms");
    }
}

#[test]
fn mutants_of_aqm_red_20ms_miss_its_bands() {
    if is_slow("mutants_of_aqm_red_20ms_miss_its_bands") {
        mutants_fail("aqm-red-20ms");
    }
}

#[test]
fn mutants_of_aqm_red_100ms_miss_its_bands() {
    if is_slow("mutants_of_aqm_red_100ms_miss_its_bands") {
        mutants_fail("aqm-red-100ms");
    }
}

#[test]
fn mutants_of_aqm_dualpi2_20ms_miss_its_bands() {
    if is_slow("mutants_of_aqm_dualpi2_20ms_miss_its_bands") {
        mutants_fail("aqm-dualpi2-20ms");
    }
}

#[test]
fn mutants_of_aqm_dualpi2_100ms_miss_its_bands() {
    if is_slow("mutants_of_aqm_dualpi2_100ms_miss_its_bands") {
        mutants_fail("aqm-dualpi2-100ms");
    }
}

#[test]
fn mutants_of_buffer_tenth_miss_its_bands() {
    if is_slow("mutants_of_buffer_tenth_miss_its_bands") {
        mutants_fail("buffer-tenth");
    }
}

#[test]
fn mutants_of_buffer_quarter_miss_its_bands() {
    if is_slow("mutants_of_buffer_quarter_miss_its_bands") {
        mutants_fail("buffer-quarter");
    }
}

#[test]
fn mutants_of_buffer_half_miss_its_bands() {
    if is_slow("mutants_of_buffer_half_miss_its_bands") {
        mutants_fail("buffer-half");
    }
}

#[test]
fn mutants_of_buffer_4bdp_miss_its_bands() {
    if is_slow("mutants_of_buffer_4bdp_miss_its_bands") {
        mutants_fail("buffer-4bdp");
    }
}

#[test]
fn mutants_of_buffer_16bdp_miss_its_bands() {
    if is_slow("mutants_of_buffer_16bdp_miss_its_bands") {
        mutants_fail("buffer-16bdp");
    }
}

#[test]
fn mutants_of_intra_fair_4_miss_its_bands() {
    if is_slow("mutants_of_intra_fair_4_miss_its_bands") {
        mutants_fail("intra-fair-4");
    }
}

#[test]
fn mutants_of_intra_fair_8_miss_its_bands() {
    if is_slow("mutants_of_intra_fair_8_miss_its_bands") {
        mutants_fail("intra-fair-8");
    }
}

#[test]
fn mutants_of_fair_1v3_miss_its_bands() {
    if is_slow("mutants_of_fair_1v3_miss_its_bands") {
        mutants_fail("fair-1v3");
    }
}

#[test]
fn mutants_of_rtt_fair_miss_its_bands() {
    if is_slow("mutants_of_rtt_fair_miss_its_bands") {
        mutants_fail("rtt-fair");
    }
}

#[test]
fn mutants_of_ecn_coexist_miss_its_bands() {
    if is_slow("mutants_of_ecn_coexist_miss_its_bands") {
        mutants_fail("ecn-coexist");
    }
}

#[test]
fn mutants_of_idle_restart_miss_its_bands() {
    mutants_fail("idle-restart");
}

#[test]
fn mutants_of_idle_restart_12s_miss_its_bands() {
    mutants_fail("idle-restart-12s");
}

#[test]
fn mutants_of_short_flows_miss_its_bands() {
    if is_slow("mutants_of_short_flows_miss_its_bands") {
        mutants_fail("short-flows");
    }
}

#[test]
fn mutants_of_media_vs_bulk_miss_its_bands() {
    if is_slow("mutants_of_media_vs_bulk_miss_its_bands") {
        mutants_fail("media-vs-bulk");
    }
}

#[test]
fn mutants_of_fq_isolation_miss_its_bands() {
    if is_slow("mutants_of_fq_isolation_miss_its_bands") {
        mutants_fail("fq-isolation");
    }
}

#[test]
fn mutants_of_fifo_no_isolation_miss_its_bands() {
    if is_slow("mutants_of_fifo_no_isolation_miss_its_bands") {
        mutants_fail("fifo-no-isolation");
    }
}

#[test]
fn mutants_of_wifi_bad_miss_its_bands() {
    mutants_fail("wifi-bad");
}

#[test]
fn mutants_of_wifi_suspended_miss_its_bands() {
    mutants_fail("wifi-suspended");
}

#[test]
fn mutants_of_wifi_suspended_six_miss_its_bands() {
    mutants_fail("wifi-suspended-six");
}

#[test]
fn mutants_of_geo_600ms_miss_its_bands() {
    if is_slow("mutants_of_geo_600ms_miss_its_bands") {
        mutants_fail("geo-600ms");
    }
}

#[test]
fn mutants_of_ack_narrow_uplink_miss_its_bands() {
    mutants_fail("ack-narrow-uplink");
}

#[test]
fn mutants_of_rand_loss_0_03pct_miss_its_bands() {
    if is_slow("mutants_of_rand_loss_0_03pct_miss_its_bands") {
        mutants_fail("rand-loss-0-03pct");
    }
}

#[test]
fn mutants_of_rand_loss_0_1pct_miss_its_bands() {
    if is_slow("mutants_of_rand_loss_0_1pct_miss_its_bands") {
        mutants_fail("rand-loss-0-1pct");
    }
}

#[test]
fn mutants_of_rand_loss_0_3pct_miss_its_bands() {
    if is_slow("mutants_of_rand_loss_0_3pct_miss_its_bands") {
        mutants_fail("rand-loss-0-3pct");
    }
}

#[test]
fn mutants_of_rand_loss_3pct_miss_its_bands() {
    mutants_fail("rand-loss-3pct");
}

#[test]
fn mutants_of_slow_short_miss_its_bands() {
    mutants_fail("slow-short");
}

#[test]
fn mutants_of_slow_long_miss_its_bands() {
    mutants_fail("slow-long");
}

#[test]
fn mutants_of_cellular_att_miss_its_bands() {
    mutants_fail("cellular-att");
}
