//! Flags.

use super::memory::Fault;
use iced_x86::ConditionCode;

/// Flags that branches look at; none where an instruction leaves one undefined.
#[derive(Clone, Copy, Default)]
pub struct Flags {
    pub carry: Option<bool>,
    pub zero: Option<bool>,
    pub sign: Option<bool>,
    pub overflow: Option<bool>,
}

impl Flags {
    pub fn holds(self, condition: ConditionCode) -> Result<bool, Fault> {
        let undefined = || "looks at an undefined flag".to_owned();
        let flag = |flag: Option<bool>| flag.ok_or_else(undefined);
        Ok(match condition {
            ConditionCode::e => flag(self.zero)?,
            ConditionCode::ne => !flag(self.zero)?,
            ConditionCode::b => flag(self.carry)?,
            ConditionCode::ae => !flag(self.carry)?,
            ConditionCode::be => flag(self.carry)? || flag(self.zero)?,
            ConditionCode::a => !(flag(self.carry)? || flag(self.zero)?),
            ConditionCode::l => flag(self.sign)? != flag(self.overflow)?,
            ConditionCode::ge => flag(self.sign)? == flag(self.overflow)?,
            ConditionCode::le => flag(self.zero)? || flag(self.sign)? != flag(self.overflow)?,
            ConditionCode::g => !flag(self.zero)? && flag(self.sign)? == flag(self.overflow)?,
            _ => return Err("condition not modelled".to_owned()),
        })
    }
}
