//! Valid files, damaged at random: reading ends with one fault, or with none, and never in a panic.

use qlogs::analyse::{analyse, follow};
use qlogs::check::{Profile, check};
use qlogs::csv;
use qlogs::diff::compare;
use qlogs::read::Reader;
use serde_json::Value;

use super::{ours, read};

/// A generator of numbers that is good enough here (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("below the limit")
    }
}

const ODD: [&str; 12] = [
    "18446744073709551616",
    "-1",
    "1e999",
    "\"NaN\"",
    "\"-inf\"",
    "null",
    "[]",
    "{}",
    "1.5",
    "\"18446744073709551615\"",
    "9007199254740993",
    "\"\\ud800\"",
];

/// One of: a cut, some flipped bytes, a number replaced by something odd, brackets nested deeply.
fn damaged(file: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut file = file.to_vec();
    match chance.below(4) {
        0 => file.truncate(chance.below(file.len() + 1)),
        1 => {
            for _ in 0..=chance.below(4) {
                let at = chance.below(file.len());
                file[at] = u8::try_from(chance.below(256)).expect("a byte");
            }
        }
        2 => {
            let digits: Vec<usize> = (1..file.len())
                .filter(|at| file[*at].is_ascii_digit() && file[at - 1] == b':')
                .collect();
            let from = digits[chance.below(digits.len())];
            let length = file[from..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
                .count();
            let odd = ODD[chance.below(ODD.len())].bytes();
            file.splice(from..from + length, odd);
        }
        _ => {
            let at = chance.below(file.len());
            let bracket = [b'[', b'{', b'"', b']'][chance.below(4)];
            let depth = chance.below(3_000);
            file.splice(at..at, std::iter::repeat_n(bracket, depth));
        }
    }
    file
}

#[test]
fn no_damage_makes_a_panic_and_the_same_damage_reads_the_same() {
    let file = ours();
    let document = document(&file);
    let mut chance = Chance(1);
    let mut faults = 0;
    for round in 0..1_500 {
        let damaged = damaged(if round % 2 == 0 { &file } else { &document }, &mut chance);
        let (records, fault) = read(&damaged);
        faults += usize::from(fault.is_some());
        if round % 50 == 0 {
            assert_eq!(read(&damaged), (records, fault), "round {round}");
        }
    }
    assert!(faults > 500, "the damage shows: {faults}");
}

/// What is built on the reader takes the same files: numbers that make no sense overflow nothing.
#[test]
fn no_damage_makes_an_analysis_panic() {
    let file = ours();
    let reader = |file: &'static [u8]| Reader::new(file).ok();
    let mut chance = Chance(3);
    for _ in 0..700 {
        let mut damaged = damaged(&file, &mut chance);
        for _ in 0..chance.below(6) {
            damaged = replaced(&damaged, &mut chance);
        }
        let damaged: &'static [u8] = damaged.leak();
        let Some(first) = reader(damaged) else {
            continue;
        };
        let analysis = analyse(first);
        let _ = (analysis.summary.to_string(), analysis.why.to_string());
        let _ = (analysis.summary.json(), analysis.why.json());
        let readers = [(); 4].map(|()| reader(damaged).expect("as before"));
        let [checked, followed, one, other] = readers;
        let _ = check(checked, &[Profile::Structure, Profile::Qvis], 10);
        let _ = follow(followed, |_| {});
        let comparison = compare(one, other, &[]);
        assert!(comparison.parting.is_none());
        assert_eq!(comparison.is_same(), comparison.faults == [None, None]);
        let mut rest = reader(damaged).expect("as before");
        while let Some(Ok(record)) = rest.next() {
            let _ = csv::line(&record, rest.header());
        }
    }
}

/// A number replaced by a huge one.
fn replaced(file: &[u8], chance: &mut Chance) -> Vec<u8> {
    let digits: Vec<usize> = (1..file.len())
        .filter(|at| file[*at].is_ascii_digit() && file[at - 1] == b':')
        .collect();
    let mut file = file.to_vec();
    if !digits.is_empty() {
        let from = digits[chance.below(digits.len())];
        let length = file[from..].iter().take_while(|byte| byte.is_ascii_digit());
        let until = from + length.count();
        let huge = ["18446744073709551615", "9223372036854775807", "0"];
        file.splice(from..until, huge[chance.below(huge.len())].bytes());
    }
    file
}

#[test]
fn damaged_archives_make_no_panic() {
    let zstd = ruzstd::encoding::compress_to_vec(
        ours().as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &ours()).expect("a vector takes all");
    let gzip = gzip.finish().expect("a vector takes all");
    let mut chance = Chance(2);
    for round in 0..1_000 {
        let mut archive = if round % 2 == 0 { &zstd } else { &gzip }.clone();
        for _ in 0..=chance.below(3) {
            let at = 4 + chance.below(archive.len() - 4);
            archive[at] ^= u8::try_from(1 + chance.below(255)).expect("a byte");
        }
        let _ = read(&archive);
    }
}

/// The same file as one document.
fn document(sequence: &[u8]) -> Vec<u8> {
    let mut records: Vec<Value> = sequence
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(&line[1..]).expect("JSON"))
        .collect();
    let mut head = records.remove(0);
    head["trace"]["events"] = records.into();
    head.to_string().into_bytes()
}
