gemm_bf16_1x16_s256_g128:
       0  test rcx,rcx
       3  je short 000000000000004Ah
       5  mov r9,100h
       f  lea rax,[rdx]
      12  tileloadd tmm0,[rax+r9]
      18  mov eax,40h
      1d  tileloadd tmm6,[rdi+rax]
      23  tileloadd tmm4,[rsi+rax]
      29  tdpbf16ps tmm0,tmm4,tmm6
      2e  add rdi,400h
      35  add rsi,800h
      3c  dec rcx
      3f  jne short 000000000000001Dh
      41  lea rax,[rdx]
      44  tilestored [rax+r9],tmm0
      4a  vzeroupper
      4d  ret

gemm_bf16_2x32_s256_g128:
      80  test rcx,rcx
      83  je near 000000000000013Fh
      89  mov r9,100h
      93  lea rax,[rdx]
      96  tileloadd tmm0,[rax+r9]
      9c  lea rax,[rdx+80h]
      a3  tileloadd tmm1,[rax+r9]
      a9  lea rax,[rdx+1000h]
      b0  tileloadd tmm2,[rax+r9]
      b6  lea rax,[rdx+1080h]
      bd  tileloadd tmm3,[rax+r9]
      c3  mov eax,40h
      c8  tileloadd tmm6,[rdi+rax]
      ce  tileloadd tmm7,[rdi+rax+3C00h]
      d8  tileloadd tmm4,[rsi+rax]
      de  tdpbf16ps tmm0,tmm4,tmm6
      e3  tdpbf16ps tmm1,tmm4,tmm7
      e8  tileloadd tmm5,[rsi+rax+400h]
      f2  tdpbf16ps tmm2,tmm5,tmm6
      f7  tdpbf16ps tmm3,tmm5,tmm7
      fc  add rdi,400h
     103  add rsi,800h
     10a  dec rcx
     10d  jne short 00000000000000C8h
     10f  lea rax,[rdx]
     112  tilestored [rax+r9],tmm0
     118  lea rax,[rdx+80h]
     11f  tilestored [rax+r9],tmm1
     125  lea rax,[rdx+1000h]
     12c  tilestored [rax+r9],tmm2
     132  lea rax,[rdx+1080h]
     139  tilestored [rax+r9],tmm3
     13f  vzeroupper
     142  ret

tiles_on:
     180  ldtilecfg [rel 18Ah]
     189  ret
     18a  add [rax],eax
     18c  add [rax],al
     18e  add [rax],al
     190  add [rax],al
     192  add [rax],al
     194  add [rax],al
     196  add [rax],al
     198  add [rax],al
     19a  add [rax],al
     19e  add [rax],al
     1a2  add [rax],al
     1a6  add [rax],al
     1aa  add [rax],al
     1ac  add [rax],al
     1ae  add [rax],al
     1b0  add [rax],al
     1b2  add [rax],al
     1b4  add [rax],al
     1b6  add [rax],al
     1b8  add [rax],al
     1ba  adc [rax],dl
     1bc  adc [rax],dl
     1be  adc [rax],dl
     1c0  adc [rax],dl
     1c2  add [rax],al
     1c4  add [rax],al
     1c6  add [rax],al
     1c8  add [rax],al

tiles_off:
     200  tilerelease
     205  ret
