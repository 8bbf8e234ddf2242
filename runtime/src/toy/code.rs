//! The toy program's machine code, one instruction per line.
//!
//! Every kernel takes its tokens (or rows) one at a time from the step's counter. `params` is `[kind, window,
//! vocab, bytes from one row of logits to the next]`.

use kernmill_plan::abi::{ABI_VERSION, Worker};
use std::mem::offset_of;

// The code has these places of the worker's fields, and those of `Args` in this version.
const _: () = assert!(offset_of!(Worker, counters) == 0x10 && offset_of!(Worker, operands) == 0x18);
const _: () = assert!(ABI_VERSION == 8, "see whether the code still fits");

/// Name, byte offset, and bytes of each function. Calls between them hold at these offsets.
pub(super) const FUNCTIONS: [(&str, usize, &[u8]); 4] =
    [("cell", 0, CELL), ("store", 64, STORE), ("sum", 192, SUM), ("logits", 384, LOGITS)];

/// Not a kernel: the address of the u32 that layer kind edx of pool rsi keeps for token ecx's sequence at
/// position r8d. Blocks are 320 bytes: a header of 64, then K of one head of two elements; element 0 is used.
#[rustfmt::skip]
const CELL: &[u8] = &[
    0x48, 0x8b, 0x47, 0x18,                                // mov rax,[rdi+0x18]
    0x89, 0xd2,                                            // mov edx,edx
    0x89, 0xc9,                                            // mov ecx,ecx
    0x8b, 0x04, 0x88,                                      // mov eax,[rax+rcx*4]
    0x8b, 0x4c, 0x97, 0x40,                                // mov ecx,[rdi+rdx*4+0x40]
    0x48, 0x8b, 0x54, 0xd7, 0x30,                          // mov rdx,[rdi+rdx*8+0x30]
    0x48, 0x0f, 0xaf, 0xc1,                                // imul rax,rcx
    0x44, 0x89, 0xc1,                                      // mov ecx,r8d
    0x41, 0x83, 0xe0, 0x0f,                                // and r8d,0xf
    0xc1, 0xe9, 0x04,                                      // shr ecx,0x4
    0x48, 0x01, 0xc8,                                      // add rax,rcx
    0x8b, 0x04, 0x82,                                      // mov eax,[rdx+rax*4]
    0x48, 0x6b, 0xc0, 0x50,                                // imul rax,rax,0x50
    0x4a, 0x8d, 0x44, 0x00, 0x10,                          // lea rax,[rax+r8*1+0x10]
    0x48, 0x8d, 0x04, 0x86,                                // lea rax,[rsi+rax*4]
    0xc3,                                                  // ret
];

/// `pool, params`: keeps token id + 1 at the token's position.
#[rustfmt::skip]
const STORE: &[u8] = &[
    0x48, 0x8b, 0x46, 0x18,                                // mov rax,[rsi+0x18]
    0x49, 0x89, 0xf1,                                      // mov r9,rsi
    0x4c, 0x8b, 0x58, 0x08,                                // mov r11,[rax+0x8]
    0x48, 0x8b, 0x30,                                      // mov rsi,[rax]
    0x49, 0x8b, 0x41, 0x10,                                // mov rax,[r9+0x10]
    0xb9, 0x01, 0x00, 0x00, 0x00,                          // mov ecx,0x1
    0xf0, 0x0f, 0xc1, 0x08,                                // lock xadd [rax],ecx
    0x3b, 0x0f,                                            // cmp ecx,[rdi]
    0x73, 0x22,                                            // jae store+0x41
    0x48, 0x8b, 0x57, 0x08,                                // mov rdx,[rdi+0x8]
    0x89, 0xc8,                                            // mov eax,ecx
    0x44, 0x8b, 0x14, 0x82,                                // mov r10d,[rdx+rax*4]
    0x48, 0x8b, 0x57, 0x10,                                // mov rdx,[rdi+0x10]
    0x44, 0x8b, 0x04, 0x82,                                // mov r8d,[rdx+rax*4]
    0x41, 0x8b, 0x13,                                      // mov edx,[r11]
    0x41, 0xff, 0xc2,                                      // inc r10d
    0xe8, 0x84, 0xff, 0xff, 0xff,                          // call cell
    0x44, 0x89, 0x10,                                      // mov [rax],r10d
    0xeb, 0xcd,                                            // jmp store+0xe
    0xc3,                                                  // ret
];

/// `pool, params, out`: out\[t\] = the sum over the window's positions p of (what is kept at p) * (p + 1).
#[rustfmt::skip]
const SUM: &[u8] = &[
    0x41, 0x57,                                            // push r15
    0x49, 0x89, 0xf2,                                      // mov r10,rsi
    0x41, 0x56,                                            // push r14
    0x41, 0xbe, 0x01, 0x00, 0x00, 0x00,                    // mov r14d,0x1
    0x41, 0x55,                                            // push r13
    0x41, 0x54,                                            // push r12
    0x55,                                                  // push rbp
    0x53,                                                  // push rbx
    0x48, 0x8b, 0x46, 0x18,                                // mov rax,[rsi+0x18]
    0x48, 0x8b, 0x30,                                      // mov rsi,[rax]
    0x48, 0x8b, 0x68, 0x08,                                // mov rbp,[rax+0x8]
    0x4c, 0x8b, 0x68, 0x10,                                // mov r13,[rax+0x10]
    0x49, 0x8b, 0x42, 0x10,                                // mov rax,[r10+0x10]
    0x41, 0xbf, 0x01, 0x00, 0x00, 0x00,                    // mov r15d,0x1
    0xf0, 0x44, 0x0f, 0xc1, 0x38,                          // lock xadd [rax],r15d
    0x44, 0x3b, 0x3f,                                      // cmp r15d,[rdi]
    0x73, 0x49,                                            // jae sum+0x7f
    0x48, 0x8b, 0x47, 0x10,                                // mov rax,[rdi+0x10]
    0x45, 0x89, 0xfc,                                      // mov r12d,r15d
    0x45, 0x31, 0xc9,                                      // xor r9d,r9d
    0x42, 0x8b, 0x1c, 0xa0,                                // mov ebx,[rax+r12*4]
    0x8b, 0x45, 0x04,                                      // mov eax,[rbp+0x4]
    0x39, 0xc3,                                            // cmp ebx,eax
    0x72, 0x09,                                            // jb sum+0x54
    0x45, 0x89, 0xf1,                                      // mov r9d,r14d
    0x41, 0x29, 0xc1,                                      // sub r9d,eax
    0x41, 0x01, 0xd9,                                      // add r9d,ebx
    0x45, 0x31, 0xdb,                                      // xor r11d,r11d
    0x44, 0x39, 0xcb,                                      // cmp ebx,r9d
    0x72, 0x1c,                                            // jb sum+0x78
    0x8b, 0x55, 0x00,                                      // mov edx,[rbp+0x0]
    0x45, 0x89, 0xc8,                                      // mov r8d,r9d
    0x44, 0x89, 0xf9,                                      // mov ecx,r15d
    0x41, 0xff, 0xc1,                                      // inc r9d
    0xe8, 0xd3, 0xfe, 0xff, 0xff,                          // call cell
    0x8b, 0x10,                                            // mov edx,[rax]
    0x41, 0x0f, 0xaf, 0xd1,                                // imul edx,r9d
    0x41, 0x01, 0xd3,                                      // add r11d,edx
    0xeb, 0xdf,                                            // jmp sum+0x57
    0x47, 0x89, 0x5c, 0xa5, 0x00,                          // mov [r13+r12*4+0x0],r11d
    0xeb, 0xa3,                                            // jmp sum+0x22
    0x5b,                                                  // pop rbx
    0x5d,                                                  // pop rbp
    0x41, 0x5c,                                            // pop r12
    0x41, 0x5d,                                            // pop r13
    0x41, 0x5e,                                            // pop r14
    0x41, 0x5f,                                            // pop r15
    0xc3,                                                  // ret
];

/// `full, sliding, params, out`: for each wanted row x = full + 31 * sliding; logit v = ((x + v) *
/// 0x9e3779b1) >> 22.
#[rustfmt::skip]
const LOGITS: &[u8] = &[
    0x48, 0x8b, 0x46, 0x18,                                // mov rax,[rsi+0x18]
    0x55,                                                  // push rbp
    0x53,                                                  // push rbx
    0x4c, 0x8b, 0x08,                                      // mov r9,[rax]
    0x4c, 0x8b, 0x50, 0x08,                                // mov r10,[rax+0x8]
    0x4c, 0x8b, 0x40, 0x10,                                // mov r8,[rax+0x10]
    0x4c, 0x8b, 0x58, 0x18,                                // mov r11,[rax+0x18]
    0x48, 0x8b, 0x56, 0x10,                                // mov rdx,[rsi+0x10]
    0xb8, 0x01, 0x00, 0x00, 0x00,                          // mov eax,0x1
    0xf0, 0x0f, 0xc1, 0x02,                                // lock xadd [rdx],eax
    0x3b, 0x47, 0x04,                                      // cmp eax,[rdi+0x4]
    0x73, 0x49,                                            // jae logits+0x70
    0x89, 0xc1,                                            // mov ecx,eax
    0x48, 0x8b, 0x47, 0x28,                                // mov rax,[rdi+0x28]
    0x41, 0x8b, 0x58, 0x08,                                // mov ebx,[r8+0x8]
    0x8b, 0x04, 0x88,                                      // mov eax,[rax+rcx*4]
    0x41, 0x6b, 0x14, 0x82, 0x1f,                          // imul edx,[r10+rax*4],0x1f
    0x41, 0x03, 0x14, 0x81,                                // add edx,[r9+rax*4]
    0x41, 0x8b, 0x40, 0x0c,                                // mov eax,[r8+0xc]
    0x69, 0xd2, 0xb1, 0x79, 0x37, 0x9e,                    // imul edx,edx,0x9e3779b1
    0x48, 0x0f, 0xaf, 0xc1,                                // imul rax,rcx
    0x31, 0xc9,                                            // xor ecx,ecx
    0x4c, 0x01, 0xd8,                                      // add rax,r11
    0x39, 0xcb,                                            // cmp ebx,ecx
    0x74, 0xc1,                                            // je logits+0x15
    0x89, 0xd5,                                            // mov ebp,edx
    0xff, 0xc1,                                            // inc ecx
    0x81, 0xea, 0x4f, 0x86, 0xc8, 0x61,                    // sub edx,0x61c8864f
    0x48, 0x83, 0xc0, 0x04,                                // add rax,0x4
    0xc1, 0xed, 0x16,                                      // shr ebp,0x16
    0xf3, 0x0f, 0x2a, 0xc5,                                // cvtsi2ss xmm0,ebp
    0xf3, 0x0f, 0x11, 0x40, 0xfc,                          // movss [rax-0x4],xmm0
    0xeb, 0xe0,                                            // jmp logits+0x50
    0x5b,                                                  // pop rbx
    0x5d,                                                  // pop rbp
    0xc3,                                                  // ret
];
