gemm_power_q8_2x1:
       0  vpbroadcastd zmm10,[rel 1BDh]
       a  mov rax,rdx
       d  vmovups zmm2,[rax]
      13  vmovups zmm3,[rax+r9]
      1a  add rax,r8
      1d  test rcx,rcx
      20  je near 00000000000001A6h
      26  vmovaps zmm6,[rdi+40h]
      2d  vpaddd zmm4,zmm6,zmm10
      33  vmovaps zmm7,[rdi+25C0h]
      3d  vpaddd zmm5,zmm7,zmm10
      43  vpaddd zmm0,zmm4,[rsi+0D8h]{1to16}
      4a  vpaddd zmm1,zmm5,[rsi+0D8h]{1to16}
      51  vmovdqa64 zmm4,[rdi+80h]
      58  vmovdqa64 zmm5,[rdi+2600h]
      62  vpbroadcastd zmm8,[rsi]
      68  vpdpbusd zmm0,zmm4,zmm8
      6e  vpdpbusd zmm1,zmm5,zmm8
      74  vmovdqa64 zmm4,[rdi+0C0h]
      7b  vmovdqa64 zmm5,[rdi+2640h]
      85  vpbroadcastd zmm8,[rsi+4]
      8c  vpdpbusd zmm0,zmm4,zmm8
      92  vpdpbusd zmm1,zmm5,zmm8
      98  vmovdqa64 zmm4,[rdi+100h]
      9f  vmovdqa64 zmm5,[rdi+2680h]
      a9  vpbroadcastd zmm8,[rsi+8]
      b0  vpdpbusd zmm0,zmm4,zmm8
      b6  vpdpbusd zmm1,zmm5,zmm8
      bc  vmovdqa64 zmm4,[rdi+140h]
      c3  vmovdqa64 zmm5,[rdi+26C0h]
      cd  vpbroadcastd zmm8,[rsi+0Ch]
      d4  vpdpbusd zmm0,zmm4,zmm8
      da  vpdpbusd zmm1,zmm5,zmm8
      e0  vmovdqa64 zmm4,[rdi+180h]
      e7  vmovdqa64 zmm5,[rdi+2700h]
      f1  vpbroadcastd zmm8,[rsi+10h]
      f8  vpdpbusd zmm0,zmm4,zmm8
      fe  vpdpbusd zmm1,zmm5,zmm8
     104  vmovdqa64 zmm4,[rdi+1C0h]
     10b  vmovdqa64 zmm5,[rdi+2740h]
     115  vpbroadcastd zmm8,[rsi+14h]
     11c  vpdpbusd zmm0,zmm4,zmm8
     122  vpdpbusd zmm1,zmm5,zmm8
     128  vmovdqa64 zmm4,[rdi+200h]
     12f  vmovdqa64 zmm5,[rdi+2780h]
     139  vpbroadcastd zmm8,[rsi+18h]
     140  vpdpbusd zmm0,zmm4,zmm8
     146  vpdpbusd zmm1,zmm5,zmm8
     14c  vmovdqa64 zmm4,[rdi+240h]
     153  vmovdqa64 zmm5,[rdi+27C0h]
     15d  vpbroadcastd zmm8,[rsi+1Ch]
     164  vpdpbusd zmm0,zmm4,zmm8
     16a  vpdpbusd zmm1,zmm5,zmm8
     170  vpbroadcastd zmm8,[rsi+0C0h]
     177  vaddps zmm0,zmm0,zmm6
     17d  vfmadd231ps zmm2,zmm0,zmm8
     183  vaddps zmm1,zmm1,zmm7
     189  vfmadd231ps zmm3,zmm1,zmm8
     18f  add rdi,280h
     196  add rsi,100h
     19d  dec rcx
     1a0  jne near 0000000000000026h
     1a6  mov rax,rdx
     1a9  vmovups [rax],zmm2
     1af  vmovups [rax+r9],zmm3
     1b6  add rax,r8
     1b9  vzeroupper
     1bc  ret
     1bd  add [rax],al
     1bf  (bad)

prefetch:
     200  test rdx,rdx
     203  je short 0000000000000218h
     205  prefetcht1 [rdi]
     208  add rdi,40h
     20c  prefetcht1 [rsi]
     20f  add rsi,40h
     213  dec rdx
     216  jne short 0000000000000205h
     218  vzeroupper
     21b  ret
