//! The vectors of a strip: sums of some rows of a panel by each tile of weights, to which blocks of products
//! are added. Scales of four rows are loaded at once where products are floats, and each is taken from there
//! by a shuffle. Elsewhere, where vectors have more to do and loads are fewer, every scale has a load of its
//! own.

use super::regs::Regs;
use crate::ukernel::gemm_tiles::{PANEL_ROWS, PRODUCT_BYTES, Strip, TileElement};
use iced_x86::IcedError;
use iced_x86::code_asm::{AsmRegister64, AsmRegisterZmm, CodeAssembler, dword_ptr, xmmword_ptr, zmmword_ptr};
use kernmill_plan::format::LINE;

/// Scales that are loaded at once: those of 16 bytes.
const SCALES: usize = 4;
/// The scaling of products by vectors before they add them.
#[derive(Clone, Copy, PartialEq)]
pub enum ProductScaling {
    /// Nothing: products are `isum * w`.
    Done,
    /// Factors are multiplied with them.
    Factors,
    /// Integers become floats, and factors are multiplied with them.
    Integers,
}

/// A place in memory: a register, and bytes behind it.
#[derive(Clone, Copy)]
pub struct Place(pub AsmRegister64, pub i32);

impl Place {
    /// So many bytes behind it.
    pub fn at(self, bytes: usize) -> Place {
        Place(self.0, self.1 + bytes as i32)
    }
}

/// Rows of a panel that vectors add at once.
#[derive(Clone, Copy, PartialEq)]
pub struct RowGroup {
    /// The panel that tiles multiply, or that before.
    pub is_before: bool,
    pub first: usize,
    pub count: usize,
}

/// Registers for them.
pub struct StripSums {
    strip: Strip,
    element: TileElement,
    /// By tile of weights, then by row of half a panel or of a whole one.
    acc: Vec<AsmRegisterZmm>,
    /// A product, where it is not done.
    pub product: AsmRegisterZmm,
    /// Scales of four rows, repeated, where products are floats.
    scales: Vec<AsmRegisterZmm>,
    /// One of them in all lanes.
    scale: AsmRegisterZmm,
    /// Factors of each tile's rows.
    pub factors: Vec<AsmRegisterZmm>,
}

impl StripSums {
    pub fn new(regs: &mut Regs, strip: Strip) -> StripSums {
        let element = TileElement::of(strip.format);
        let scales = if element == TileElement::Bf16 { PANEL_ROWS / SCALES } else { 0 };
        StripSums {
            strip,
            element,
            acc: regs.vectors(PANEL_ROWS),
            product: regs.vector(),
            scales: regs.vectors(scales),
            scale: regs.vector(),
            factors: regs.vectors(strip.tiles),
        }
    }

    /// Rows that have registers at once.
    pub fn group_rows(&self) -> usize {
        PANEL_ROWS / self.strip.tiles
    }

    /// The sums of rows, each with its register.
    fn of(&self, group: RowGroup, sums: Place) -> Vec<(AsmRegisterZmm, Place)> {
        let of = |tile: usize| {
            let rows = group.first..group.first + group.count;
            rows.zip(&self.acc[tile * self.group_rows()..])
                .map(move |(row, acc)| (*acc, sums.at(row * self.strip.stride + tile * self.strip.gap)))
        };
        (0..self.strip.tiles).flat_map(of).collect()
    }

    /// Loads the sums of rows, of a panel whose sums begin there.
    pub fn load(&self, a: &mut CodeAssembler, group: RowGroup, sums: Place) -> Result<(), IcedError> {
        let mut sums = self.of(group, sums).into_iter();
        sums.try_for_each(|(acc, Place(base, offset))| a.vmovups(acc, zmmword_ptr(base + offset)))
    }

    /// Stores them.
    pub fn store(&self, a: &mut CodeAssembler, group: RowGroup, sums: Place) -> Result<(), IcedError> {
        let mut sums = self.of(group, sums).into_iter();
        sums.try_for_each(|(acc, Place(base, offset))| a.vmovups(zmmword_ptr(base + offset), acc))
    }

    /// Adds a block's products: of its panel, its weights and its products the places are given. `beside` is
    /// called behind each row, with its number.
    pub fn add_block(
        &self,
        a: &mut CodeAssembler,
        group: RowGroup,
        [panel, weights, products]: [Place; 3],
        scaling: ProductScaling,
        beside: impl Fn(&mut CodeAssembler, usize) -> Result<(), IcedError>,
    ) -> Result<(), IcedError> {
        let (element, count, scale, product) = (self.element, group.count, self.scale, self.product);
        if scaling != ProductScaling::Done {
            for (tile, factors) in self.factors.iter().enumerate() {
                let place = weights.at(tile * element.decoded_tile() + element.decoded_factors());
                a.vmovups(*factors, zmmword_ptr(place.0 + place.1))?;
            }
        }
        let scales = panel.at(element.panel_scales() + group.first * 4);
        if scaling != ProductScaling::Integers {
            for (four, register) in self.scales.iter().enumerate().take(count / SCALES) {
                let place = scales.at(four * SCALES * 4);
                a.vbroadcasti32x4(*register, xmmword_ptr(place.0 + place.1))?;
            }
        }
        for row in 0..count {
            if scaling == ProductScaling::Integers {
                let place = scales.at(row * 4);
                a.vpbroadcastd(scale, dword_ptr(place.0 + place.1))?;
            } else {
                let lane = (row % SCALES) as i32;
                a.vpshufd(scale, self.scales[row / SCALES], lane * 0b01_01_01_01)?;
            }
            for (tile, factors) in self.factors.iter().enumerate() {
                let acc = self.acc[tile * self.group_rows() + row];
                let place = products.at(tile * PRODUCT_BYTES + (group.first + row) * LINE);
                let place = zmmword_ptr(place.0 + place.1);
                match scaling {
                    ProductScaling::Done => {
                        a.vfmadd231ps(acc, scale, place)?;
                        continue;
                    }
                    ProductScaling::Factors => a.vmulps(product, *factors, place)?,
                    ProductScaling::Integers => {
                        a.vcvtdq2ps(product, place)?;
                        a.vmulps(product, product, *factors)?;
                    }
                }
                a.vfmadd231ps(acc, product, scale)?;
            }
            beside(a, row)?;
        }
        Ok(())
    }
}
