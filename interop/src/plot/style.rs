//! Colours and type.
//!
//! The colours follow the palette of Okabe and Ito, which people with any colour vision can tell
//! apart, made darker for light pages and lighter for dark ones. No variables: not every program
//! that shows SVG knows them.

use super::canvas::Px;

/// The size of a line below the title.
pub(super) const ABOUT: Px = Px::whole(13);
/// The size of ordinary text.
pub(super) const SMALL: Px = Px::tenths(115);
/// The size of names, which are bold: as wide as larger text.
pub(super) const TEXT: Px = Px::tenths(122);

/// The classes of a controller end in this number. After six controllers the colours come again.
pub(super) fn style_of(index: usize) -> usize {
    index % 6
}

pub(super) const STYLE: &str = "\
text{font:11.5px system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif;fill:#59636e}
.name{font-size:17px;font-weight:600;fill:#1f2328}
.about{font-size:13px}
.title{font-size:12px;font-weight:600;fill:#1f2328}
.grid{stroke:#818b98;stroke-opacity:.25;stroke-width:.7;fill:none}
.axis{stroke:#818b98;stroke-width:1;fill:none}
.reference{stroke:#59636e;stroke-width:1;stroke-dasharray:5 3;fill:none}
.phase{fill:#818b98;fill-opacity:.13}
.curve{fill:none;stroke-linejoin:round}
.range{fill:none;stroke-opacity:.28}
.dots{fill:none;stroke-linecap:round}
.end{fill:none;stroke-width:1;stroke-dasharray:2 3}
.c0{stroke:#0072b2}.t0,.f0{fill:#0072b2}
.c1{stroke:#d55e00}.t1,.f1{fill:#c25500}
.c2{stroke:#00825f}.t2,.f2{fill:#00825f}
.c3{stroke:#a8487f}.t3,.f3{fill:#a8487f}
.c4{stroke:#8a6a00}.t4,.f4{fill:#8a6a00}
.c5{stroke:#444c56}.t5,.f5{fill:#444c56}
.t0,.t1,.t2,.t3,.t4,.t5{font-weight:600}
@media (prefers-color-scheme:dark){
text{fill:#9198a1}
.name,.title{fill:#f0f6fc}
.reference{stroke:#9198a1}
.phase{fill:#9198a1;fill-opacity:.16}
.c0{stroke:#56b4e9}.t0,.f0{fill:#56b4e9}
.c1{stroke:#f08a3c}.t1,.f1{fill:#f08a3c}
.c2{stroke:#2bc49a}.t2,.f2{fill:#2bc49a}
.c3{stroke:#e59ac4}.t3,.f3{fill:#e59ac4}
.c4{stroke:#e3c04d}.t4,.f4{fill:#e3c04d}
.c5{stroke:#d1d7e0}.t5,.f5{fill:#d1d7e0}
}
";
