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

tiles_on:
      80  ldtilecfg [rel 8Ah]
      89  ret
      8a  add [rax],eax
      8c  add [rax],al
      8e  add [rax],al
      90  add [rax],al
      92  add [rax],al
      94  add [rax],al
      96  add [rax],al
      98  add [rax],al
      9a  add [rax],al
      9e  add [rax],al
      a2  add [rax],al
      a6  add [rax],al
      aa  add [rax],al
      ac  add [rax],al
      ae  add [rax],al
      b0  add [rax],al
      b2  add [rax],al
      b4  add [rax],al
      b6  add [rax],al
      b8  add [rax],al
      ba  adc [rax],dl
      bc  adc [rax],dl
      be  adc [rax],dl
      c0  adc [rax],dl
      c2  add [rax],al
      c4  add [rax],al
      c6  add [rax],al
      c8  add [rax],al

tiles_off:
     100  tilerelease
     105  ret
