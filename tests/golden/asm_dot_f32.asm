dot_bf16_f32_k64_t1:
       0  push rbx
       1  mov rbx,[rsi]
       4  vpxor ymm7,ymm7,ymm7
       8  vpxor ymm8,ymm8,ymm8
       d  vpxor ymm9,ymm9,ymm9
      12  vpxor ymm10,ymm10,ymm10
      17  vpxor ymm11,ymm11,ymm11
      1c  vpxor ymm12,ymm12,ymm12
      21  vpxor ymm13,ymm13,ymm13
      26  vpxor ymm14,ymm14,ymm14
      2b  mov r8,rdi
      2e  lea r9,[rdi]
      31  xor r10,r10
      34  vmovups ymm1,[r9]
      39  vpslld ymm1,ymm1,10h
      3e  vmovups ymm2,[r9+20h]
      44  vpslld ymm2,ymm2,10h
      49  vbroadcastss ymm4,[rbx+r10]
      4f  vfmadd231ps ymm7,ymm1,ymm4
      54  vfmadd231ps ymm11,ymm2,ymm4
      59  vmovups ymm1,[r9]
      5e  vpand ymm1,ymm1,[rel 140h]
      66  vmovups ymm2,[r9+20h]
      6c  vpand ymm2,ymm2,[rel 140h]
      74  vbroadcastss ymm4,[rbx+r10+4]
      7b  vfmadd231ps ymm8,ymm1,ymm4
      80  vfmadd231ps ymm12,ymm2,ymm4
      85  vmovups ymm1,[r9+40h]
      8b  vpslld ymm1,ymm1,10h
      90  vmovups ymm2,[r9+60h]
      96  vpslld ymm2,ymm2,10h
      9b  vbroadcastss ymm4,[rbx+r10+8]
      a2  vfmadd231ps ymm9,ymm1,ymm4
      a7  vfmadd231ps ymm13,ymm2,ymm4
      ac  vmovups ymm1,[r9+40h]
      b2  vpand ymm1,ymm1,[rel 140h]
      ba  vmovups ymm2,[r9+60h]
      c0  vpand ymm2,ymm2,[rel 140h]
      c8  vbroadcastss ymm4,[rbx+r10+0Ch]
      cf  vfmadd231ps ymm10,ymm1,ymm4
      d4  vfmadd231ps ymm14,ymm2,ymm4
      d9  add r9,80h
      e0  add r10,10h
      e4  cmp r10,100h
      eb  jne near 0000000000000034h
      f1  mov rax,rdx
      f4  vaddps ymm7,ymm7,ymm8
      f9  vaddps ymm9,ymm9,ymm10
      fe  vaddps ymm7,ymm7,ymm9
     103  vmovups [rax],ymm7
     107  vaddps ymm11,ymm11,ymm12
     10c  vaddps ymm13,ymm13,ymm14
     111  vaddps ymm11,ymm11,ymm13
     116  vmovups [rax+20h],ymm11
     11b  add rax,rcx
     11e  vzeroupper
     121  pop rbx
     122  ret
     123  add [rax],al
     125  add [rax],al
     127  add [rax],al
     129  add [rax],al
     12b  add [rax],al
     12d  add [rax],al
     12f  add [rax],al
     131  add [rax],al
     133  add [rax],al
     135  add [rax],al
     137  add [rax],al
     139  add [rax],al
     13b  add [rax],al
     13d  add [rax],al
     13f  add [rax],al
     141  add bh,bh
     143  inc dword [rax]
     145  add bh,bh
     147  inc dword [rax]
     149  add bh,bh
     14b  inc dword [rax]
     14d  add bh,bh
     14f  inc dword [rax]
     151  add bh,bh
     153  inc dword [rax]
     155  add bh,bh
     157  inc dword [rax]
     159  add bh,bh
     15b  inc dword [rax]
     15d  add bh,bh
     15f  (bad)
