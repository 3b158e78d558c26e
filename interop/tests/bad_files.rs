//! Every way to get a scenario file wrong gives one line with file, line, key and what is allowed.

use interop::scenario::Scenario;

const GOOD: &str = r#"name = "example"
about = "What does it show?"
limit = "10 s"
controllers = ["newreno"]

[link]
rate = "100 Mbit/s"
rtt = "10 ms"
queue = "2 BDP"

[[phase]]
from = "0 s"
until = "2 s"
both = { loss = "30 %" }

[download]
size = "10 MB"

[expect.newreno]
completion = { of = "p95", max = "4.5 s" }
"#;

/// Replaces `old` in the good file by `new` and expects exactly this complaint.
#[track_caller]
fn complains(old: &str, new: &str, expected: &str) {
    assert_eq!(GOOD.matches(old).count(), 1, "{old:?} must occur once");
    let text = GOOD.replacen(old, new, 1);
    let error = Scenario::parse("example.toml", &text).expect_err(new);
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_file_that_all_others_are_made_from_is_good() {
    let scenario = Scenario::parse("example.toml", GOOD).expect("good");
    assert_eq!(scenario.name, "example");
}

#[test]
fn text_that_is_not_toml_names_the_line() {
    let error = Scenario::parse("example.toml", "name = \"a\"\nabout = \n").expect_err("no value");
    let message = error.to_string();
    assert!(
        message.starts_with("example.toml:2: is not valid TOML: "),
        "{message}"
    );
    assert!(!message.contains('\n'), "{message}");
}

#[test]
fn a_key_given_twice_names_the_line() {
    let text = GOOD.replacen("limit = \"10 s\"", "limit = \"10 s\"\nlimit = \"11 s\"", 1);
    let message = Scenario::parse("example.toml", &text)
        .expect_err("twice")
        .to_string();
    assert!(
        message.starts_with("example.toml:4: is not valid TOML: duplicate key"),
        "{message}"
    );
}

#[test]
fn unknown_keys_are_refused_with_those_that_are_allowed() {
    complains(
        "limit = \"10 s\"",
        "limit = \"10 s\"\nlimits = \"10 s\"",
        "example.toml:4: limits: unknown key; allowed are name, about, seeds, real_seeds, limit, \
         controllers, link, phase, drop, download, flow, expect, article",
    );
    complains(
        "rtt = \"10 ms\"",
        "rtt = \"10 ms\"\nratt = \"10 ms\"",
        "example.toml:9: link.ratt: unknown key; allowed are rate, rtt, queue, loss, loss_place, \
         datagram, cellular, satellite, trace, forward, reverse, queue_packets, aqm, burst_loss, policer, shaper, jitter, reorder, \
         duplicate, corrupt, thinning, slots, largest",
    );
    complains(
        "queue = \"2 BDP\"",
        "queue = \"2 BDP\"\nforward = { wobble = \"1 ms\" }",
        "example.toml:10: link.forward.wobble: unknown key; allowed are rate, delay, queue, loss, \
         loss_place, drop, cellular, satellite, trace, queue_packets, aqm, burst_loss, policer, shaper, jitter, reorder, \
         duplicate, corrupt, thinning, slots, largest",
    );
    complains(
        "until = \"2 s\"",
        "to = \"2 s\"",
        "example.toml:13: phase.to: unknown key; allowed are at, from, until, forward, reverse, both",
    );
    complains(
        "{ loss = \"30 %\" }",
        "{ los = \"30 %\" }",
        "example.toml:14: phase.both.los: unknown key; allowed are rate, delay, queue, loss, drop, \
         queue_packets, aqm, burst_loss, policer, shaper, jitter, reorder, \
         duplicate, corrupt, thinning, slots, largest",
    );
    complains(
        "size = \"10 MB\"",
        "bytes = \"10 MB\"",
        "example.toml:17: download.bytes: unknown key; allowed are size, sizes, duration, start",
    );
    complains(
        "of = \"p95\"",
        "over = \"p95\"",
        "example.toml:20: expect.newreno.completion.over: unknown key; allowed are of, case, flow, \
         rate, from, until, min, max, min_runs",
    );
}

#[test]
fn an_unknown_metric_lists_the_known_ones() {
    complains(
        "completion = {",
        "completions = {",
        "example.toml:20: expect.newreno.completions: unknown key; allowed are completed, \
         completion, handshake, transfer, goodput, delivery, utilisation, rtt_p50, rtt_p95, \
         rtt_p99, queue_delay_p50, queue_delay_p95, pto_count, cuts, transitions, flips, \
         time_at_minimum, escape, window_at_end, share, jain, total_goodput, reach, answer_p50, answer_p95, \
         lost_vs_dropped, loss_share, marks, resent, largest_burst, least_share, most_share",
    );
}

#[test]
fn missing_keys_say_what_to_write() {
    complains(
        "name = \"example\"\n",
        "",
        "example.toml: name: is missing; give the scenario a name such as \"loss-phase\"",
    );
    complains(
        "limit = \"10 s\"\n",
        "",
        "example.toml: limit: is missing; give the time at which a run ends, such as \"10 s\"",
    );
    complains(
        "rate = \"100 Mbit/s\"\n",
        "",
        "example.toml:6: link.rate: is missing; give it, such as \"100 Mbit/s\"",
    );
    complains(
        "queue = \"2 BDP\"\n",
        "",
        "example.toml:6: link.queue: is missing; give it, such as \"1 BDP\" or \"250 kB\"",
    );
    complains(
        "rtt = \"10 ms\"\n",
        "",
        "example.toml:6: link.rtt: is missing; give it, such as \"40 ms\", or a delay for each \
         direction (forward has none)",
    );
    complains(
        "size = \"10 MB\"\n",
        "",
        "example.toml:16: download.size: is missing; give size (\"10 MB\"), sizes ([\"1 MB\", \
         \"10 MB\"]) or duration (\"30 s\")",
    );
}

#[test]
fn wrong_units_show_the_text_and_the_units_that_exist() {
    // The words after the key are those of the parser of units, which has its own tests.
    let rate = "100 MB".parse::<units::Rate>().expect_err("bytes");
    complains(
        "rate = \"100 Mbit/s\"",
        "rate = \"100 MB\"",
        &format!("example.toml:7: link.rate: {rate}"),
    );
    let span = units::parse_duration("10 sec").expect_err("no such unit");
    complains(
        "limit = \"10 s\"",
        "limit = \"10 sec\"",
        &format!("example.toml:3: limit: {span}"),
    );
    let share = "thirty %".parse::<units::Fraction>().expect_err("words");
    complains(
        "{ loss = \"30 %\" }",
        "{ loss = \"thirty %\" }",
        &format!("example.toml:14: phase.both.loss: {share}"),
    );
    for (error, unit) in [
        (rate.to_string(), "Mbit/s"),
        (span.to_string(), "ms"),
        (share.to_string(), "%"),
    ] {
        assert!(error.contains(unit), "{error}");
    }
}

#[test]
fn values_of_the_wrong_type_show_an_example() {
    complains(
        "limit = \"10 s\"",
        "limit = 10",
        "example.toml:3: limit: is a whole number; expected a text such as \"10 s\"",
    );
    complains(
        "controllers = [\"newreno\"]",
        "controllers = \"newreno\"",
        "example.toml:4: controllers: is a text; expected a list such as [\"newreno\", \"cubic\"]",
    );
    complains(
        "{ loss = \"30 %\" }",
        "\"30 %\"",
        "example.toml:14: phase.both: is a text; expected a table such as { loss = \"30 %\" }",
    );
}

#[test]
fn values_out_of_range_name_the_range() {
    complains(
        "limit = \"10 s\"",
        "limit = \"2 h\"",
        "example.toml:3: limit: 7200 s is out of range; allowed is 10 ms to 3600 s",
    );
    complains(
        "limit = \"10 s\"",
        "limit = \"10 s\"\nseeds = 0",
        "example.toml:4: seeds: 0 is out of range; allowed is 1 to 10000",
    );
    complains(
        "limit = \"10 s\"",
        "limit = \"10 s\"\nseeds = -3",
        "example.toml:4: seeds: -3 is out of range; allowed is 1 to 10000",
    );
    complains(
        "rate = \"100 Mbit/s\"",
        "rate = \"101 Gbit/s\"",
        "example.toml:7: link.rate: 101 Gbit/s is out of range; allowed is 1 kbit/s to 100 Gbit/s, or \
         unlimited",
    );
    complains(
        "rtt = \"10 ms\"",
        "rtt = \"61 s\"",
        "example.toml:8: link.rtt: 61 s is out of range; allowed is 0 s to 60 s",
    );
    complains(
        "queue = \"2 BDP\"",
        "queue = \"0.01 BDP\"",
        "example.toml:9: link.queue: 0.01 BDP (1250 B) is out of range; allowed is at least one \
         full packet, 1378 B",
    );
    complains(
        "queue = \"2 BDP\"",
        "queue = \"2 BDP\"\ndatagram = \"1199 B\"",
        "example.toml:10: link.datagram: 1199 B is out of range; allowed is 1200 B to 8972 B",
    );
    complains(
        "size = \"10 MB\"",
        "size = \"0 B\"",
        "example.toml:17: download.size: 0 B is out of range; allowed is 1 B to 1000 GB",
    );
    complains(
        "name = \"example\"",
        "name = \"My Example\"",
        "example.toml:1: name: \"My Example\" is out of range; allowed is 1 to 40 lower-case \
         letters, digits and hyphens",
    );
    complains(
        "controllers = [\"newreno\"]",
        "controllers = []",
        "example.toml:4: controllers: [] is out of range; allowed is at least one controller that \
         this build has",
    );
}

#[test]
fn a_share_above_one_is_refused() {
    let text = GOOD.replacen("30 %", "130 %", 1);
    let message = Scenario::parse("example.toml", &text)
        .expect_err("above one")
        .to_string();
    assert!(
        message.starts_with("example.toml:14: phase.both.loss: \"130 %\": "),
        "{message}"
    );
}

#[test]
fn unknown_controllers_are_answered_with_those_that_exist() {
    complains(
        "controllers = [\"newreno\"]",
        "controllers = [\"newreno\", \"vegas\"]",
        "example.toml:4: controllers: \"vegas\": unknown controller; allowed are newreno, cubic, bbr3, \
         fixed:RATE, for example \"fixed:10Mbit/s\"",
    );
    complains(
        "[expect.newreno]",
        "[expect.reno]",
        "example.toml:19: expect.reno: \"reno\": unknown controller; allowed are newreno, cubic, bbr3, \
         fixed:RATE, for example \"fixed:10Mbit/s\", or all",
    );
}

#[test]
fn unknown_words_are_answered_with_those_that_exist() {
    complains(
        "queue = \"2 BDP\"",
        "queue = \"2 BDP\"\nloss_place = \"in queue\"",
        "example.toml:10: link.loss_place: unknown word \"in queue\"; allowed are \"after queue\", \
         \"before queue\"",
    );
    complains(
        "of = \"p95\"",
        "of = \"p90\"",
        "example.toml:20: expect.newreno.completion.of: unknown word \"p90\"; allowed are \
         \"median\", \"p95\", \"every\", \"least\", \"most\"",
    );
    complains(
        "of = \"p95\"",
        "case = \"1 MB\"",
        "example.toml:20: expect.newreno.completion.case: unknown word \"1 MB\"; allowed are \
         \"10 MB\"",
    );
}

#[test]
fn phases_have_an_end_or_stay() {
    complains(
        "until = \"2 s\"\n",
        "",
        "example.toml:11: phase.until: is missing; say when the phase ends, or write at instead of \
         from if it stays",
    );
    complains(
        "from = \"0 s\"",
        "from = \"0 s\"\nat = \"1 s\"",
        "example.toml:13: phase.at: give at (the change stays) or from and until (it ends), not both",
    );
    complains(
        "until = \"2 s\"",
        "until = \"0 s\"",
        "example.toml:13: phase.until: 0 s is out of range; allowed is after from, 0 s",
    );
    complains(
        "from = \"0 s\"",
        "from = \"10 s\"",
        "example.toml:12: phase.from: 10 s is out of range; allowed is before the limit of 10 s",
    );
    complains(
        "both = { loss = \"30 %\" }\n",
        "",
        "example.toml:11: phase: is missing; what it changes; give forward, reverse or both, such \
         as both = { loss = \"30 %\" }",
    );
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    complains(
        "queue = \"2 BDP\"",
        "queue = \"2 BDP\"\nforward = { delay = \"1 ms\" }",
        "example.toml:10: link.forward.delay: give link.rtt or a delay per direction, not both",
    );
    complains(
        "size = \"10 MB\"",
        "size = \"10 MB\"\nduration = \"5 s\"",
        "example.toml:18: download.duration: give one of size, sizes and duration",
    );
    complains(
        "both = { loss = \"30 %\" }",
        "both = { loss = \"30 %\" }\nforward = { loss = \"10 %\" }",
        "example.toml:15: phase.forward.loss: is also set by the phase that begins at 0 s; phases \
         may not overlap on one setting",
    );
    complains(
        "{ loss = \"30 %\" }",
        "{ drop = 3 }",
        "example.toml:14: phase.both.drop: drops the packets that follow one instant; write at \
         instead of from and until",
    );
    complains(
        "max = \"4.5 s\"",
        "max = \"4.5 s\", min = \"5 s\"",
        "example.toml:20: expect.newreno.completion: min, 5 s, is above max, 4.5 s",
    );
}

#[test]
fn windows_are_stated_where_they_are_needed_and_nowhere_else() {
    complains(
        "max = \"4.5 s\"",
        "max = \"4.5 s\", from = \"1 s\"",
        "example.toml:20: expect.newreno.completion.from: completion is measured over the whole \
         run and takes no from or until",
    );
    complains(
        "completion = { of = \"p95\", max = \"4.5 s\" }",
        "goodput = { min = \"4 Mbit/s\" }",
        "example.toml:20: expect.newreno.goodput.from: is missing; say in which part of the run it \
         is measured, such as from = \"5 s\", until = \"30 s\"",
    );
    complains(
        "completion = { of = \"p95\", max = \"4.5 s\" }",
        "goodput = { min = \"4 Mbit/s\", from = \"5 s\", until = \"11 s\" }",
        "example.toml:20: expect.newreno.goodput.until: 11 s is out of range; allowed is up to the \
         limit of 10 s",
    );
    complains(
        "completion = { of = \"p95\", max = \"4.5 s\" }",
        "goodput = { min = \"4 Mbit/s\", from = \"5 s\", until = \"5.005 s\" }",
        "example.toml:20: expect.newreno.goodput.until: 5.005 s is out of range; allowed is a \
         multiple of 10 ms",
    );
}

#[test]
fn a_band_without_ends_is_refused() {
    complains(
        ", max = \"4.5 s\"",
        "",
        "example.toml:20: expect.newreno.completion.max: is missing; give min, max or both",
    );
    complains(
        "completion = { of = \"p95\", max = \"4.5 s\" }",
        "rtt_p95 = { max = \"many RTT\", from = \"1 s\", until = \"2 s\" }",
        "example.toml:20: expect.newreno.rtt_p95.max: \"many RTT\": not a number; a multiple of the \
         base round-trip time is a number with up to three decimals and RTT, for example \"2.05 \
         RTT\"",
    );
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing.toml");
    let message = interop::scenario::find(&missing.display().to_string())
        .expect_err("missing")
        .to_string();
    assert!(
        message.starts_with(&format!(
            "{}: cannot be read: No such file",
            missing.display()
        )),
        "{message}"
    );
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, [0xff, 0xfe, 0]).expect("written");
    let message = Scenario::load(&binary).expect_err("binary").to_string();
    assert!(
        message.ends_with("cannot be read: it is not text in UTF-8"),
        "{message}"
    );
}

/// Completes the example with what follows it.
#[track_caller]
fn complains_about_more(more: &str, expected: &str) {
    let text = format!("{GOOD}\n{more}\n");
    let error = Scenario::parse("example.toml", &text).expect_err(more);
    assert_eq!(error.to_string(), expected);
}

#[test]
fn rules_for_drops_are_checked() {
    let drop = "[[drop]]\ndirection = \"forward\"\ncount = 8\ngap = \"15 ms\"\n";
    let text = format!("{GOOD}\n{drop}");
    Scenario::parse("example.toml", &text).expect("a good rule");
    let lines = GOOD.lines().count() + 1;
    for (from, to, line, message) in [
        (
            "\"forward\"",
            "\"sideways\"",
            2,
            "drop.direction: unknown word \"sideways\"; allowed are \"forward\", \"reverse\"",
        ),
        (
            "direction = \"forward\"\n",
            "",
            1,
            "drop.direction: is missing; say in which direction, \"forward\" or \"reverse\"",
        ),
        (
            "count = 8\n",
            "",
            1,
            "drop.count: is missing; say how many packets to drop, such as 8",
        ),
        (
            "count = 8",
            "count = 0",
            3,
            "drop.count: 0 is out of range; allowed is 1 to 1000000000",
        ),
        (
            "\"15 ms\"",
            "\"15 s\"",
            4,
            "drop.gap: 15 s is out of range; allowed is below the limit of 10 s",
        ),
        (
            "gap = \"15 ms\"\n",
            "",
            1,
            "drop.gap: is missing; say how long each drop keeps away the next, such as \"15 ms\"",
        ),
        (
            "count = 8",
            "count = 8\nskips = 1",
            4,
            "drop.skips: unknown key; allowed are direction, count, gap, at_least, space, frames, state, skip",
        ),
    ] {
        let line = lines + line;
        complains_about_more(
            &drop.replace(from, to),
            &format!("example.toml:{line}: {message}"),
        );
    }
}

#[test]
fn figures_of_an_article_are_checked() {
    let article =
        "[article]\nsource = \"Somebody\"\nfigures = [{ metric = \"flips\", says = \"999\" }]\n";
    let text = format!("{GOOD}\n{article}");
    Scenario::parse("example.toml", &text).expect("a good article");
    let lines = GOOD.lines().count() + 1;
    for (from, to, line, message) in [
        (
            "source = \"Somebody\"\n",
            "",
            1,
            "article.source: is missing; say in a few words which article it is",
        ),
        (
            ", says = \"999\"",
            "",
            3,
            "article.figures.says: is missing; give the value of the article in its own words",
        ),
        (
            "says",
            "min",
            3,
            "article.figures.min: unknown key; allowed are metric, of, case, flow, rate, from, until, says",
        ),
    ] {
        complains_about_more(
            &article.replace(from, to),
            &format!("example.toml:{}: {message}", lines + line),
        );
    }
    let text = format!("{GOOD}\n{}", article.replace("flips", "flops"));
    let error = Scenario::parse("example.toml", &text).expect_err("no such metric");
    assert!(
        error
            .to_string()
            .contains("article.figures.metric: unknown word \"flops\"; allowed are \"completed\""),
        "{error}"
    );
}

#[test]
fn a_controller_that_is_wrong_on_purpose_may_stand_in_any_file() {
    let text = GOOD
        .replace("[\"newreno\"]", "[\"newreno\", \"cubic-trap\"]")
        .replace("[expect.newreno]", "[expect.cubic-trap]");
    let scenario = Scenario::parse("example.toml", &text).expect("good in every build");
    let names: Vec<String> = scenario.controllers.iter().map(|c| c.to_string()).collect();
    if cfg!(feature = "mutants") {
        assert_eq!(names, ["newreno", "cubic-trap"]);
        assert!(scenario.left_out.is_empty());
    } else {
        assert_eq!(names, ["newreno"]);
        assert_eq!(scenario.left_out, ["cubic-trap"]);
    }
    let only = GOOD.replace("[\"newreno\"]", "[\"cubic-trap\"]");
    let alone = Scenario::parse("example.toml", &only);
    assert_eq!(alone.is_ok(), cfg!(feature = "mutants"));
}

#[test]
fn a_link_without_a_rate_limit_has_limits_of_its_own() {
    complains(
        "rate = \"100 Mbit/s\"\nrtt = \"10 ms\"\nqueue = \"2 BDP\"",
        "rate = \"unlimited\"\nrtt = \"0 s\"",
        "example.toml: link.rtt: a link without a rate limit needs a round-trip time above 0 s",
    );
    let text = GOOD
        .replace("\"100 Mbit/s\"", "\"unlimited\"")
        .replace("size = \"10 MB\"", "duration = \"5 s\"");
    let error = Scenario::parse("example.toml", &text).expect_err("endless");
    assert_eq!(
        error.to_string(),
        "example.toml: link.rate: a link without a rate limit is for downloads of a size; what takes all it can get \
         for a time needs a rate"
    );
    let text = GOOD.replace("\"100 Mbit/s\"", "\"unlimited\"").replace(
        "completion = { of = \"p95\", max = \"4.5 s\" }",
        "utilisation = { from = \"1 s\", until = \"2 s\", min = \"90 %\" }",
    );
    let error = Scenario::parse("example.toml", &text).expect_err("no such thing");
    assert_eq!(
        error.to_string(),
        "example.toml:20: expect.newreno.utilisation: a link without a rate limit has no utilisation"
    );
}

#[test]
fn an_escape_needs_something_to_escape_from() {
    let text = GOOD
        .replace("from = \"0 s\"\nuntil = \"2 s\"", "at = \"0 s\"")
        .replace(
            "completion = { of = \"p95\", max = \"4.5 s\" }",
            "escape = { max = \"1 s\" }",
        );
    let error = Scenario::parse("example.toml", &text).expect_err("no end of a phase");
    assert_eq!(
        error.to_string(),
        "example.toml:19: expect.newreno.escape: escape is timed from the end of the last phase; add one with from and \
         until"
    );
}

#[test]
fn the_words_of_an_article_fit_on_a_line() {
    for (source, says) in [("", "999"), ("A\\nB", "999"), ("A", "\\u001b[31m9")] {
        let text = format!(
            "{GOOD}\n[article]\nsource = \"{source}\"\nfigures = [{{ metric = \"flips\", says = \"{says}\" }}]\n"
        );
        let error = Scenario::parse("example.toml", &text).expect_err("unfit");
        assert!(
            error
                .to_string()
                .ends_with("is out of range; allowed is some words on one line"),
            "{error}"
        );
    }
    complains_about_more(
        "[article]\nsource = \"A\"\nfigures = []",
        &format!(
            "example.toml:{}: article.figures: [] is out of range; allowed is at least one figure",
            GOOD.lines().count() + 4
        ),
    );
}

#[test]
fn impairments_are_checked_where_they_stand() {
    for (key, message) in [
        (
            "aqm = \"cake\"",
            "link.aqm: unknown word \"cake\"; allowed are \"codel\", \"fq-codel\", \"pie\", \"red\", \"dualpi2\", \"drop-tail\"",
        ),
        (
            "aqm = { kind = \"codel\", step = \"1 ms\" }",
            "link.aqm.step: unknown key; allowed are kind, target, interval, ecn",
        ),
        (
            "aqm = { kind = \"pie\", ecn = 1 }",
            "link.aqm.ecn: is a whole number; expected true or false",
        ),
        (
            "burst_loss = { to_bad = \"1 %\" }",
            "link.burst_loss.to_good: is missing; give it, such as \"25 %\"",
        ),
        (
            "burst_loss = { to_bad = \"1 %\", good = \"1 s\" }",
            "link.burst_loss.good: give to_bad and to_good (per packet) or good and bad (mean stays in time), not both",
        ),
        (
            "policer = { rate = \"1 Mbit/s\" }",
            "link.policer.burst: is missing; give it, such as \"16 kB\"",
        ),
        (
            "jitter = { walk = \"1 ms\", wifi = \"2 ms\" }",
            "link.jitter: give one of walk, clamped, reordering and wifi",
        ),
        (
            "reorder = { share = \"1 %\" }",
            "link.reorder.delay: is missing; give it, such as \"5 ms\"",
        ),
        ("corrupt = \"101 %\"", "link.corrupt: "),
        (
            "thinning = { at_most = \"100 B\", every = 0, hold = \"1 ms\" }",
            "link.thinning.every: 0 is out of range; allowed is 1 to 1000000",
        ),
        ("slots = { period = \"0 s\" }", "link.slots: "),
        (
            "cellular = \"gprs\"",
            "link.cellular: unknown word \"gprs\"; allowed are \"att-lte\"",
        ),
        (
            "cellular = \"att-lte\"",
            "link.rate: give a rate or where slots come from (cellular, satellite, trace), not both",
        ),
        (
            "trace = \"/nowhere/at-all\"",
            "link.trace: cannot be read: /nowhere/at-all: ",
        ),
    ] {
        let text = GOOD.replacen("queue = \"2 BDP\"", &format!("queue = \"2 BDP\"\n{key}"), 1);
        let error = Scenario::parse("example.toml", &text)
            .expect_err(key)
            .to_string();
        let said = error.splitn(3, ':').nth(2).unwrap_or_default().trim();
        assert!(said.starts_with(message), "{key}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
