//! Memory with bounds.

/// Why an instruction cannot be executed.
pub type Fault = String;

/// Bytes at an address.
pub struct Region {
    pub address: u64,
    pub bytes: Vec<u8>,
    pub writable: bool,
}

/// The memory that can be accessed.
#[derive(Default)]
pub struct Memory {
    regions: Vec<Region>,
}

impl Memory {
    pub fn add(&mut self, region: Region) {
        self.regions.push(region);
    }

    /// The region that starts there.
    pub fn region(&self, address: u64) -> Option<&Region> {
        self.regions.iter().find(|region| region.address == address && !region.bytes.is_empty())
    }

    fn find(&mut self, address: u64, bytes: usize) -> Result<(&mut Region, usize), Fault> {
        self.regions
            .iter_mut()
            .find_map(|region| {
                let offset = usize::try_from(address.checked_sub(region.address)?).ok()?;
                (offset.checked_add(bytes)? <= region.bytes.len()).then_some((region, offset))
            })
            .ok_or_else(|| format!("no {bytes} bytes at {address:#x}"))
    }

    pub fn load(&mut self, address: u64, bytes: usize) -> Result<&[u8], Fault> {
        let (region, offset) = self.find(address, bytes)?;
        Ok(&region.bytes[offset..offset + bytes])
    }

    pub fn store(&mut self, address: u64, data: &[u8]) -> Result<(), Fault> {
        let (region, offset) = self.find(address, data.len())?;
        if !region.writable {
            return Err(format!("{address:#x} is read-only"));
        }
        region.bytes[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }

    /// A number of at most eight bytes.
    pub fn load_number(&mut self, address: u64, bytes: usize) -> Result<u64, Fault> {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(self.load(address, bytes)?);
        Ok(u64::from_le_bytes(number))
    }
}
