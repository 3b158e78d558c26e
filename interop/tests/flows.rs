//! Several flows on one link: who gets what, and what a file may say about it.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use interop::expect::Judgement;
use interop::play::{PlayRequest, Player};
use interop::real_player::RealPlayer;
use interop::results::{FlowResult, RunResult};
use interop::runner::{Group, Plan, play_all};
use interop::scenario::Scenario;
use interop::virtual_player::VirtualPlayer;

const LINK: &str = r#"name = "shared"
about = "Who gets what?"
limit = "20 s"
controllers = ["newreno"]

[link]
rate = "20 Mbit/s"
rtt = "20 ms"
queue = "1 BDP"
"#;

fn scenario(rest: &str) -> Scenario {
    Scenario::parse("shared.toml", &format!("{LINK}\n{rest}")).expect("a good file")
}

fn play(scenario: &Scenario, seeds: u64) -> Group {
    static PLAYER: OnceLock<VirtualPlayer> = OnceLock::new();
    let player = PLAYER.get_or_init(|| VirtualPlayer::new().expect("a player"));
    let plan = Plan {
        scenario,
        controllers: scenario.controllers.clone(),
        seeds: (1..=seeds).collect(),
        limit: scenario.limit,
        jobs: NonZeroUsize::MIN,
        qlog_dir: None,
    };
    let mut groups = play_all(&plan, player, &mut |_| {}).expect("played");
    groups.remove(0)
}

fn flow<'a>(run: &'a RunResult, name: &str) -> &'a FlowResult {
    let mut flows = run.flows.iter();
    flows.find(|flow| flow.name == name).expect("a flow")
}

const TWO_BULK: &str = r#"
[[flow]]
name = "first"
app = "bulk"

[[flow]]
name = "second"
app = "bulk"
controller = "cubic"
start = "1 s"

[expect.all]
share = { from = "10 s", until = "20 s", min = "35 %", max = "65 %" }
jain = { from = "10 s", until = "20 s", min = "90 %" }
total_goodput = { from = "10 s", until = "20 s", min = "18 Mbit/s", max = "20 Mbit/s" }
goodput = { flow = "second", from = "10 s", until = "20 s", min = "6 Mbit/s", max = "13 Mbit/s" }
reach = { flow = "second", rate = "6 Mbit/s", from = "1 s", until = "20 s", max = "6 s" }
"#;

#[test]
fn two_bulk_flows_share_the_link() {
    let group = play(&scenario(TWO_BULK), 2);
    for verdict in &group.verdicts {
        assert_eq!(verdict.judgement, Judgement::Met, "{verdict:?}");
    }
    let run = &group.runs[0];
    assert_eq!(run.flows.len(), 2);
    assert_eq!(flow(run, "first").controller, "newreno");
    assert_eq!(flow(run, "second").controller, "cubic");
    // The tested flow is the first, and the run is about it.
    assert_eq!(run.app_bytes, flow(run, "first").app_bytes);
    assert_eq!(run.packets_lost, flow(run, "first").packets_lost);
    let second: u64 = flow(run, "second").app_bytes_per_100_ms[..10].iter().sum();
    assert_eq!(second, 0, "it starts after a second");
}

/// A flow at a fixed 15 of 20 Mbit/s does not give way, and every one of these bands says so.
#[test]
fn a_flow_that_does_not_give_way_is_found_out() {
    let text = TWO_BULK.replace("controller = \"cubic\"", "controller = \"fixed:15Mbit/s\"");
    let group = play(&scenario(&text), 1);
    let missed: Vec<&str> = group
        .verdicts
        .iter()
        .filter(|verdict| verdict.judgement == Judgement::Missed)
        .map(|verdict| verdict.band.metric.key())
        .collect();
    assert_eq!(missed, ["share", "jain", "goodput"]);
}

#[test]
fn the_same_seed_gives_the_same_flows_and_another_does_not() {
    let scenario = scenario(TWO_BULK);
    let (first, again) = (play(&scenario, 2), play(&scenario, 2));
    assert_eq!(first.runs[0].flows, again.runs[0].flows);
    assert_eq!(first.runs[1].forward, again.runs[1].forward);
    assert_ne!(first.runs[0].forward, first.runs[1].forward);
}

#[test]
fn answers_take_a_round_trip_and_their_own_time_on_an_idle_link() {
    let group = play(
        &scenario(
            r#"
[[flow]]
name = "mice"
app = "requests"
every = "250 ms"
size = "1 kB"

[[flow]]
name = "video"
app = "media"
every = "50 ms"
size = "1 kB"
rtt = "60 ms"
"#,
        ),
        1,
    );
    let run = &group.runs[0];
    let mice = flow(run, "mice").answers.as_ref().expect("answers");
    // 20 s at four a second on average; the gaps are exponential, so about 80 with a deviation of nine.
    assert!((50..=110).contains(&mice.sample_count), "{mice:?}");
    // A round trip of 20 ms, and 0.4 ms for 1 kB at 20 Mbit/s.
    assert!((20_000_000..22_000_000).contains(&mice.p50_ns), "{mice:?}");
    let video = flow(run, "video").answers.as_ref().expect("frames");
    assert!((380..=400).contains(&video.sample_count), "{video:?}");
    // One way, half of 60 ms.
    assert!(
        (30_000_000..32_000_000).contains(&video.p50_ns),
        "{video:?}"
    );
}

/// Half of the answers are below the median, and the mean is far above it: 12 kB and 81 kB.
#[test]
fn answers_of_drawn_sizes_are_many_small_and_a_few_large_ones() {
    let mice = |p95: &str| {
        let mice =
            "[[flow]]\nname = \"mice\"\napp = \"requests\"\nevery = \"100 ms\"\nsize = \"12 kB\"\n";
        play(&scenario(&format!("{mice}{p95}")), 1).runs.remove(0)
    };
    let drawn = mice("size_p95 = \"300 kB\"\n");
    let drawn = flow(&drawn, "mice");
    let answers = drawn.answers.as_ref().expect("answers");
    let mean = drawn.app_bytes / answers.sample_count;
    assert!((40_000..160_000).contains(&mean), "{mean}, {answers:?}");
    // 12 kB take 26 ms, 300 kB not below 140.
    assert!(answers.p50_ns < 100_000_000, "{answers:?}");
    assert!(answers.p95_ns > 100_000_000, "{answers:?}");
    let alike = mice("size_p95 = \"12 kB\"\n");
    let alike = flow(&alike, "mice");
    let count = alike.answers.as_ref().expect("answers").sample_count;
    // The last may be under way.
    let whole = count * 12_000;
    assert!((whole..whole + 24_000).contains(&alike.app_bytes));
}

#[test]
fn a_flow_in_the_other_direction_takes_nothing_from_the_first_but_its_acknowledgements() {
    let with = |rest: &str| {
        // Both queues of one bandwidth-delay product, or the longer one would decide both round-trip times.
        let link = LINK.replace(
            "queue = \"1 BDP\"",
            "queue = \"1 BDP\"\nreverse = { queue = \"1 BDP\" }",
        );
        let text = format!("{link}\n[[flow]]\nname = \"down\"\napp = \"bulk\"\n{rest}");
        let scenario = Scenario::parse("two-way.toml", &text).expect("a good file");
        play(&scenario, 1).runs.remove(0)
    };
    let both = with("[[flow]]\nname = \"up\"\napp = \"bulk\"\ndirection = \"reverse\"\n");
    let (down, up) = (flow(&both, "down"), flow(&both, "up"));
    assert!(up.is_reverse && !down.is_reverse);
    for one in [down, up] {
        // 20 Mbit/s for 20 s are 50 MB.
        assert!(
            one.app_bytes > 30_000_000,
            "{} got {}",
            one.name,
            one.app_bytes
        );
    }
}

#[test]
fn bursts_leave_the_link_alone_in_between() {
    let group = play(
        &scenario(
            "[[flow]]\nname = \"on and off\"\napp = \"bursts\"\nbusy = \"1 s\"\nidle = \"3 s\"\n",
        ),
        1,
    );
    let steps = &group.runs[0].app_bytes_per_100_ms;
    let busy = steps.iter().filter(|bytes| **bytes > 0).count();
    // Five bursts of one second, and what was under way at the end of each.
    assert!((40..=75).contains(&busy), "{busy} of {}", steps.len());
}

#[test]
fn a_flow_that_stops_gives_its_part_back() {
    let text = TWO_BULK
        .replace("start = \"1 s\"", "start = \"1 s\"\nstop = \"8 s\"")
        .split("[expect.all]")
        .next()
        .unwrap_or_default()
        .to_owned();
    let group = play(&scenario(&text), 1);
    let run = &group.runs[0];
    let late: u64 = flow(run, "second")
        .app_bytes_per_100_ms
        .iter()
        .skip(85)
        .sum();
    assert_eq!(late, 0);
    let alone: u64 = run.app_bytes_per_100_ms[150..200].iter().sum();
    // 5 s of 19 Mbit/s.
    assert!(alone > 11_000_000, "{alone}");
}

#[test]
fn a_download_with_company_is_still_the_download() {
    let group = play(
        &scenario("[download]\nsize = \"5 MB\"\n[[flow]]\napp = \"bulk\"\n"),
        1,
    );
    let run = &group.runs[0];
    let names: Vec<&str> = run.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["download", "flow 2"]);
    assert_eq!(run.app_bytes, 5_000_000);
    assert_eq!(flow(run, "download").app_bytes, 5_000_000);
    let completion = run.completion_ns.expect("it completed");
    // Alone it takes 2.2 s.
    assert!(
        (3_000_000_000..10_000_000_000).contains(&completion),
        "{completion}"
    );
}

#[test]
fn real_sockets_carry_no_second_flow_and_say_so() {
    let scenario = scenario(TWO_BULK);
    let player = RealPlayer::new().expect("a player");
    let request = PlayRequest {
        scenario: &scenario,
        case: &scenario.cases[0],
        algorithm: &scenario.controllers[0],
        seed: 1,
        limit: scenario.limit,
        qlog_dir: None,
    };
    let error = player.play(&request).expect_err("not over real sockets");
    assert_eq!(
        error.to_string(),
        "several flows are played in virtual time only, not over real sockets"
    );
}

#[test]
fn a_wrong_flow_is_refused_in_one_line() {
    let good = "[[flow]]\nname = \"a\"\napp = \"bulk\"\n[[flow]]\nname = \"b\"\napp = \"media\"\nevery = \"33 ms\"\nsize = \"1 kB\"\n";
    for (from, to, message) in [
        (
            "\"bulk\"",
            "\"bulky\"",
            "flow.app: unknown word \"bulky\"; allowed are \"bulk\", \"bursts\", \"requests\", \"media\"",
        ),
        (
            "app = \"bulk\"\n",
            "",
            "flow.app: is missing; say what the flow sends: \"bulk\", \"bursts\", \"requests\", \"media\"",
        ),
        (
            "\"b\"",
            "\"a\"",
            "flow: there are two flows of the name \"a\"",
        ),
        (
            "\"b\"",
            "\"\"",
            "flow.name: \"\" is out of range; allowed is 1 to 40 letters on one line",
        ),
        (
            "app = \"bulk\"",
            "app = \"bulk\"\nsize = \"1 kB\"",
            "flow.size: says nothing about the app \"bulk\"",
        ),
        (
            "size = \"1 kB\"\n",
            "",
            "flow.size: is missing; give a size such as \"16 KiB\"",
        ),
        (
            "\"33 ms\"",
            "\"0 s\"",
            "flow.every: 0 s is out of range; allowed is 100 us to 1 h",
        ),
        (
            "app = \"bulk\"",
            "app = \"bulk\"\nrtt = \"10 ms\"",
            "flow.rtt: 10 ms is out of range; allowed is 20 ms (the link's) to 60 s",
        ),
        (
            "app = \"bulk\"",
            "app = \"bulk\"\nstart = \"20 s\"",
            "flow.start: 20 s is out of range; allowed is before the limit of 20 s",
        ),
        (
            "app = \"bulk\"",
            "app = \"bulk\"\nstart = \"5 s\"\nstop = \"5 s\"",
            "flow.stop: 5 s is out of range; allowed is after start, 5 s",
        ),
        (
            "app = \"bulk\"",
            "app = \"bulk\"\ndirection = \"up\"",
            "flow.direction: unknown word \"up\"; allowed are \"forward\", \"reverse\"",
        ),
        (
            "size = \"1 kB\"",
            "size = \"1 kB\"\nsize_p95 = \"9 kB\"",
            "flow.size_p95: says nothing about the app \"media\"",
        ),
        (
            "\"media\"",
            "\"requests\"\nsize_p95 = \"999 B\"",
            "flow.size_p95: 999 B is out of range; allowed is 1 kB (the median, size) to 1 GB",
        ),
        (
            "app = \"bulk\"",
            "app = \"bulk\"\ncolour = \"red\"",
            "flow.colour: unknown key; allowed are name, controller, app, direction, start, stop, rtt, busy, idle, size, size_p95, every",
        ),
    ] {
        let text = format!("{LINK}\n{}", good.replacen(from, to, 1));
        let error = Scenario::parse("x.toml", &text)
            .expect_err(message)
            .to_string();
        let said = error.splitn(3, ':').nth(2).unwrap_or_default().trim();
        assert_eq!(said, message, "{error}");
    }
    for (expect, message) in [
        (
            "jain = { from = \"1 s\", until = \"2 s\", min = \"90 %\" }\n",
            None,
        ),
        (
            "answer_p95 = { from = \"1 s\", until = \"2 s\", max = \"1 s\" }\n",
            Some("expect.all.answer_p95.flow: is missing; say whose answers: \"a\", \"b\""),
        ),
        (
            "goodput = { flow = \"c\", from = \"1 s\", until = \"2 s\", min = \"1 Mbit/s\" }\n",
            Some("expect.all.goodput.flow: unknown word \"c\"; allowed are \"a\", \"b\""),
        ),
        (
            "reach = { from = \"1 s\", until = \"2 s\", max = \"1 s\" }\n",
            Some(
                "expect.all.reach.rate: is missing; say which goodput is to be reached, such as \"90 Mbit/s\"",
            ),
        ),
        (
            "cuts = { flow = \"a\", max = 3 }\n",
            Some("expect.all.cuts.flow: cuts is not measured for one flow"),
        ),
        (
            "cuts = { rate = \"1 Mbit/s\", max = 3 }\n",
            Some("expect.all.cuts.rate: cuts takes no rate; reach does"),
        ),
    ] {
        let text = format!("{LINK}\n{good}\n[expect.all]\n{expect}");
        let error = Scenario::parse("x.toml", &text)
            .err()
            .map(|error| error.to_string());
        let said = error.as_ref().and_then(|error| error.splitn(3, ':').nth(2));
        assert_eq!(said.map(str::trim), message);
    }
    let alone = format!(
        "{LINK}\n[[flow]]\napp = \"bulk\"\n[expect.all]\nshare = {{ from = \"1 s\", until = \"2 s\", min = \"1 %\" }}\n"
    );
    let error = Scenario::parse("x.toml", &alone).expect_err("one flow shares nothing");
    assert!(
        error
            .to_string()
            .ends_with("share needs several flows; add [[flow]] tables"),
        "{error}"
    );
}
