//! Arithmetic and imports, compared with Rust's wrapping and saturating operations and with
//! `values`.

use std::path::PathBuf;
use std::sync::LazyLock;

use attune_values::{Value, Width};
use proptest::prelude::*;

use crate::{answers, driver};

static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| driver("arithmetic", "clang-19"));

/// The result's bits, divisions by zero, for each question.
fn ask(questions: &[(&str, u64, u64)]) -> Vec<Vec<u64>> {
    let input: String =
        questions.iter().map(|(what, a, b)| format!("{what} {a:x} {b:x}\n")).collect();
    let said = answers(&DRIVER, input);
    let lines = said.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let (bits, counters) = words.split_at(words.len() - 2);
        let bits = bits.iter().map(|word| u64::from_str_radix(word, 16).unwrap());
        bits.chain(counters.iter().map(|word| word.parse().unwrap())).collect()
    });
    let lines: Vec<Vec<u64>> = lines.collect();
    assert_eq!(lines.len(), questions.len());
    lines
}

/// Numbers where arithmetic goes wrong if it does, and some between.
fn ints() -> Vec<i64> {
    let edges = [
        0,
        1,
        -1,
        2,
        -2,
        3,
        -7,
        10,
        1 << 31,
        1 << 32,
        (1 << 32) - 1,
        i64::MAX,
        i64::MIN,
        i64::MIN + 1,
    ];
    let mixed = (1..12u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64);
    edges.into_iter().chain(mixed).collect()
}

fn floats() -> Vec<f64> {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.1,
        -2.5,
        3.0,
        1e300,
        -1e300,
        1e-300,
        5e-324,
        -5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        9.3e18,
        -9.3e18,
        9223372036854775808.0,
        -9223372036854775808.0,
        3.4028235e38,
        3.4028236e38,
        1e39,
        -1e39,
        254.9,
        65535.0,
        -128.5,
    ];
    edges.to_vec()
}

#[test]
fn ints_wrap_and_never_trap() {
    let mut questions = Vec::new();
    let mut expected = Vec::new();
    for a in ints() {
        for b in ints() {
            let mut add = |what, result: i64, divisions| {
                questions.push((what, a as u64, b as u64));
                expected.push(vec![result as u64, divisions, 0]);
            };
            add("add", a.wrapping_add(b), 0);
            add("sub", a.wrapping_sub(b), 0);
            add("mul", a.wrapping_mul(b), 0);
            add("neg", a.wrapping_neg(), 0);
            add("div", if b == 0 { 0 } else { a.wrapping_div(b) }, u64::from(b == 0));
            add("mod", if b == 0 { a } else { a.wrapping_rem(b) }, u64::from(b == 0));
        }
    }
    for ((question, said), expected) in questions.iter().zip(ask(&questions)).zip(expected) {
        assert_eq!(said, expected, "{question:?}");
    }
}

#[test]
fn floats_divide_convert_and_order_as_defined() {
    let mut questions = Vec::new();
    let mut expected = Vec::new();
    for a in floats() {
        for b in floats() {
            let mut add = |what, result: u64, divisions| {
                questions.push((what, a.to_bits(), b.to_bits()));
                expected.push((result, divisions));
            };
            let zero = b == 0.0;
            add("fdiv", if zero { 0 } else { (a / b).to_bits() }, u64::from(zero));
            add("fmod", if zero { a } else { a % b }.to_bits(), u64::from(zero));
            add("int", a as i64 as u64, 0);
            // What is not a number is below every number and equal to itself.
            add("less", u64::from(a < b || (a.is_nan() && !b.is_nan())), 0);
        }
    }
    for ((question, said), (result, divisions)) in
        questions.iter().zip(ask(&questions)).zip(expected)
    {
        let both_nan = question.0 != "int"
            && f64::from_bits(said[0]).is_nan()
            && f64::from_bits(result).is_nan();
        assert!(said[0] == result || both_nan, "{question:x?}: {:x} is not {result:x}", said[0]);
        assert_eq!(said[1], divisions, "{question:x?}");
    }
}

#[test]
fn random_numbers_are_splitmix64_reduced_by_the_high_half() {
    let mut questions = Vec::new();
    let mut expected = Vec::new();
    for seed in ints() {
        for bound in ints() {
            let mut z = (seed as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^= z >> 31;
            questions.push(("random", seed as u64, bound as u64));
            expected.push(if bound <= 0 {
                0
            } else {
                ((u128::from(z) * bound as u128) >> 64) as u64
            });
        }
    }
    for ((question, said), expected) in questions.iter().zip(ask(&questions)).zip(expected) {
        assert_eq!(said[0], expected, "{question:?}");
    }
}

const LETTERS: [&str; 11] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];

#[test]
fn imports_of_every_width_clamp_and_count_like_values() {
    let mut questions = Vec::new();
    let mut expected = Vec::new();
    let names: Vec<[String; 2]> =
        LETTERS.iter().map(|letter| [format!("int_{letter}"), format!("real_{letter}")]).collect();
    for (width, [int_name, float_name]) in Width::ALL.into_iter().zip(&names) {
        let mut add = |name, bits, value: Value| {
            let stored = width.store(value);
            let loaded = width.load(&stored.value[..width.size()]);
            let whole = loaded.value.to_int();
            let clamped = [stored.clamped, loaded.clamped, whole.clamped]
                .into_iter()
                .filter(|&it| it)
                .count();
            questions.push((name, bits, 0));
            expected.push((loaded.value.to_float(), whole.value, clamped as u64));
        };
        ints().into_iter().for_each(|n| add(int_name.as_str(), n as u64, Value::Int(n)));
        floats().into_iter().for_each(|x| add(float_name.as_str(), x.to_bits(), Value::Float(x)));
    }
    for ((question, said), (float, int, clamped)) in
        questions.iter().zip(ask(&questions)).zip(expected)
    {
        assert!(
            f64::from_bits(said[0]).to_bits() == float.to_bits() || float.is_nan(),
            "{question:x?}: {float}"
        );
        assert_eq!((said[1] as i64, said[3]), (int, clamped), "{question:x?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn the_remainder_of_floats_is_exact(
        pairs in prop::collection::vec((any::<f64>(), any::<f64>()), 2000),
    ) {
        let questions: Vec<_> =
            pairs.iter().map(|(a, b)| ("fmod", a.to_bits(), b.to_bits())).collect();
        for ((a, b), said) in pairs.iter().zip(ask(&questions)) {
            let result = if *b == 0.0 { *a } else { a % b };
            prop_assert!(said[0] == result.to_bits() || result.is_nan(), "{a:e} % {b:e}");
        }
    }
}
