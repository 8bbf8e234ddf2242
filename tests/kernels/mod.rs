//! Generated code against plain definitions, on every level that this machine can run; on others too, in an
//! interpreter of machine code, what multiplies q8 rows by panels or by adjacent tiles, attention, and what
//! uses AMX.

mod attention;
mod bf16;
mod embed;
mod fence;
mod functions;
mod gemm;
mod guard;
mod hand_out;
pub mod machine;
mod operands;
mod packed;
mod replay;
mod rows;
mod strip_product;
mod tile_products;
mod ukernels;

use kernmill_kernels_gen::asm::{self, AsmKernel};
use kernmill_kernels_gen::generate::generate_ukernels;
use kernmill_kernels_gen::ukernel::MicroKernel;
use kernmill_kernels_gen::ukernel::gemm_tiles::TileShapes;
use kernmill_os::tiles;
use kernmill_plan::format::WeightFormat;
use kernmill_plan::program::CodeBlob;
use kernmill_plan::target::Level;
use machine::{Machine, Memory, Region};
use memmap2::{Mmap, MmapMut};

/// Every level of this machine, with numbers that between them choose every version of every micro-kernel.
/// Not `amx`, whose own micro-kernels need tiles around them, and permission: they run in the interpreter,
/// and between [`Tiles`] on a CPU that has them.
pub fn versions() -> impl Iterator<Item = (Level, usize)> {
    let dot = MicroKernel::DotQ8 { format: WeightFormat::Mxfp4, k: 64, tokens: 1 };
    let count = move |level| asm::candidates(&dot, level).count() + 1;
    let levels = Level::supported().into_iter().filter(|level| !level.has_tiles());
    levels.flat_map(move |level| (0..count(level)).map(move |version| (level, version)))
}

/// [`versions`], and with `true` the numbers of assembled versions on levels that this CPU lacks: these run
/// in the interpreter.
pub fn versions_anywhere() -> impl Iterator<Item = (Level, usize, bool)> {
    let lacking = Level::ALL.into_iter().filter(|level| !level.missing().is_empty());
    let lacking = lacking.flat_map(|level| [(level, 0, true), (level, 1, true)]);
    versions().map(|(level, version)| (level, version, false)).chain(lacking)
}

/// A micro-kernel's code; none for the interpreter when that version is not a wide one.
pub fn ukernel_code(ukernel: &MicroKernel, level: Level, version: usize, interpreted: bool) -> Option<Code> {
    let choose = choose(level, version);
    (!interpreted || choose(ukernel).is_some())
        .then(|| Code::new(generate_ukernels(std::slice::from_ref(ukernel), level, &choose).unwrap()))
}

/// Runs symbol 0 in the interpreter, with the memory of these slices.
pub fn interpret(code: &Code, read: &[&[u8]], written: &mut [&mut [u8]], args: &[u64]) {
    let mut machine = Machine::new(Memory::default());
    let region =
        |bytes: &[u8], writable| Region { address: bytes.as_ptr() as u64, bytes: bytes.to_vec(), writable };
    read.iter().for_each(|bytes| machine.memory.add(region(bytes, false)));
    written.iter().for_each(|bytes| machine.memory.add(region(bytes, true)));
    machine.call(code.bytes(0), code.address(0) as u64, args).unwrap_or_else(|fault| panic!("{fault}"));
    for bytes in written {
        let region = machine.memory.region(bytes.as_ptr() as u64).expect("it was added");
        bytes.copy_from_slice(&region.bytes);
    }
}

/// A micro-kernel's version of that number: its wide ones in order, then the 128-bit one.
pub fn choose(level: Level, version: usize) -> impl Fn(&MicroKernel) -> Option<&'static AsmKernel> {
    move |ukernel| asm::candidates(ukernel, level).nth(version)
}

pub fn name(level: Level, version: usize) -> String {
    format!("{} version {version}", level.name())
}

#[test]
fn the_numbers_choose_every_version() {
    for level in Level::supported().into_iter().filter(|level| !level.has_tiles()) {
        let most = versions().filter(|(other, _)| *other == level).count();
        for format in WeightFormat::ALL {
            let f32_dot = MicroKernel::DotF32 { format, k: 256, tokens: 1 };
            let of_blocks =
                [MicroKernel::DotQ8 { format, k: 256, tokens: 1 }, MicroKernel::Decode { format }];
            let of_blocks = of_blocks.into_iter().filter(|_| format.is_blocked());
            for ukernel in of_blocks.chain([f32_dot]) {
                assert!(asm::candidates(&ukernel, level).count() < most, "{ukernel} for {}", level.name());
            }
        }
    }
}

/// Configures and releases tiles of this CPU.
pub struct Tiles(Code);

impl Tiles {
    /// None when the CPU has no tiles or the system does not permit them.
    pub fn of_host(shapes: TileShapes) -> Option<Tiles> {
        if !Level::Amx.missing().is_empty() || tiles::request().is_err() {
            return None;
        }
        let ukernels = [MicroKernel::TilesOn(shapes), MicroKernel::TilesOff];
        Some(Tiles(Code::new(generate_ukernels(&ukernels, Level::Amx, &choose(Level::Amx, 0)).unwrap())))
    }

    /// Runs something while tiles are configured.
    pub fn around(&self, run: impl FnOnce()) {
        let [on, off] = [0, 1].map(|index| {
            // SAFETY: both micro-kernels take nothing and return nothing.
            unsafe { std::mem::transmute::<*const u8, unsafe extern "C" fn()>(self.0.address(index)) }
        });
        // SAFETY: the CPU has tiles and the system permits them; nothing else here uses them.
        unsafe { on() };
        run();
        // SAFETY: as above.
        unsafe { off() };
    }
}

/// A code blob that can be called.
pub struct Code {
    map: Mmap,
    blob: CodeBlob,
}

impl Code {
    pub fn new(blob: CodeBlob) -> Code {
        let mut map = MmapMut::map_anon(blob.bytes.len()).unwrap();
        map.copy_from_slice(&blob.bytes);
        Code { map: map.make_exec().unwrap(), blob }
    }

    /// Machine code of symbol `index`.
    pub fn bytes(&self, index: usize) -> &[u8] {
        let symbol = &self.blob.symbols[index];
        &self.map[symbol.offset as usize..][..symbol.size as usize]
    }

    /// Address of symbol `index`.
    pub fn address(&self, index: usize) -> *const u8 {
        &raw const self.map[self.blob.symbols[index].offset as usize]
    }
}
