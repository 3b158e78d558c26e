//! BBRv3 (draft-ietf-ccwg-bbr-06): draft.

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
mod probe_bw;
mod probe_rtt;
mod script;
mod startup;
