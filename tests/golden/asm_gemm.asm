gemm_pair_q8_1x2:
       0  push rbx
       1  push rbp
       2  push r12
       4  test rcx,rcx
       7  je near 00000000000002EEh
       d  lea rax,[rel 2F6h]
      14  mov rbp,rdx
      17  lea r10,[rdi]
      1a  mov r11,rsi
      1d  mov rbx,rcx
      20  vpbroadcastd ymm4,[r11+0D8h]
      29  vpbroadcastd ymm5,[r11+0D8h]
      32  vpbroadcastd ymm6,[r11+0DCh]
      3b  vpbroadcastd ymm7,[r11+0DCh]
      44  vmovdqu ymm0,[r10+80h]
      4d  vmovdqu ymm1,[r10+0A0h]
      56  vpbroadcastd ymm3,[r11]
      5b  vpmaddubsw ymm2,ymm0,ymm3
      60  vpmaddubsw ymm3,ymm1,ymm3
      65  vpaddw ymm4,ymm4,ymm2
      69  vpaddw ymm5,ymm5,ymm3
      6d  vpbroadcastd ymm3,[r11+20h]
      73  vpmaddubsw ymm2,ymm0,ymm3
      78  vpmaddubsw ymm3,ymm1,ymm3
      7d  vpaddw ymm6,ymm6,ymm2
      81  vpaddw ymm7,ymm7,ymm3
      85  vmovdqu ymm0,[r10+0C0h]
      8e  vmovdqu ymm1,[r10+0E0h]
      97  vpbroadcastd ymm3,[r11+4]
      9d  vpmaddubsw ymm2,ymm0,ymm3
      a2  vpmaddubsw ymm3,ymm1,ymm3
      a7  vpaddw ymm4,ymm4,ymm2
      ab  vpaddw ymm5,ymm5,ymm3
      af  vpbroadcastd ymm3,[r11+24h]
      b5  vpmaddubsw ymm2,ymm0,ymm3
      ba  vpmaddubsw ymm3,ymm1,ymm3
      bf  vpaddw ymm6,ymm6,ymm2
      c3  vpaddw ymm7,ymm7,ymm3
      c7  vmovdqu ymm0,[r10+100h]
      d0  vmovdqu ymm1,[r10+120h]
      d9  vpbroadcastd ymm3,[r11+8]
      df  vpmaddubsw ymm2,ymm0,ymm3
      e4  vpmaddubsw ymm3,ymm1,ymm3
      e9  vpaddw ymm4,ymm4,ymm2
      ed  vpaddw ymm5,ymm5,ymm3
      f1  vpbroadcastd ymm3,[r11+28h]
      f7  vpmaddubsw ymm2,ymm0,ymm3
      fc  vpmaddubsw ymm3,ymm1,ymm3
     101  vpaddw ymm6,ymm6,ymm2
     105  vpaddw ymm7,ymm7,ymm3
     109  vmovdqu ymm0,[r10+140h]
     112  vmovdqu ymm1,[r10+160h]
     11b  vpbroadcastd ymm3,[r11+0Ch]
     121  vpmaddubsw ymm2,ymm0,ymm3
     126  vpmaddubsw ymm3,ymm1,ymm3
     12b  vpaddw ymm4,ymm4,ymm2
     12f  vpaddw ymm5,ymm5,ymm3
     133  vpbroadcastd ymm3,[r11+2Ch]
     139  vpmaddubsw ymm2,ymm0,ymm3
     13e  vpmaddubsw ymm3,ymm1,ymm3
     143  vpaddw ymm6,ymm6,ymm2
     147  vpaddw ymm7,ymm7,ymm3
     14b  vmovdqu ymm0,[r10+180h]
     154  vmovdqu ymm1,[r10+1A0h]
     15d  vpbroadcastd ymm3,[r11+10h]
     163  vpmaddubsw ymm2,ymm0,ymm3
     168  vpmaddubsw ymm3,ymm1,ymm3
     16d  vpaddw ymm4,ymm4,ymm2
     171  vpaddw ymm5,ymm5,ymm3
     175  vpbroadcastd ymm3,[r11+30h]
     17b  vpmaddubsw ymm2,ymm0,ymm3
     180  vpmaddubsw ymm3,ymm1,ymm3
     185  vpaddw ymm6,ymm6,ymm2
     189  vpaddw ymm7,ymm7,ymm3
     18d  vmovdqu ymm0,[r10+1C0h]
     196  vmovdqu ymm1,[r10+1E0h]
     19f  vpbroadcastd ymm3,[r11+14h]
     1a5  vpmaddubsw ymm2,ymm0,ymm3
     1aa  vpmaddubsw ymm3,ymm1,ymm3
     1af  vpaddw ymm4,ymm4,ymm2
     1b3  vpaddw ymm5,ymm5,ymm3
     1b7  vpbroadcastd ymm3,[r11+34h]
     1bd  vpmaddubsw ymm2,ymm0,ymm3
     1c2  vpmaddubsw ymm3,ymm1,ymm3
     1c7  vpaddw ymm6,ymm6,ymm2
     1cb  vpaddw ymm7,ymm7,ymm3
     1cf  vmovdqu ymm0,[r10+200h]
     1d8  vmovdqu ymm1,[r10+220h]
     1e1  vpbroadcastd ymm3,[r11+18h]
     1e7  vpmaddubsw ymm2,ymm0,ymm3
     1ec  vpmaddubsw ymm3,ymm1,ymm3
     1f1  vpaddw ymm4,ymm4,ymm2
     1f5  vpaddw ymm5,ymm5,ymm3
     1f9  vpbroadcastd ymm3,[r11+38h]
     1ff  vpmaddubsw ymm2,ymm0,ymm3
     204  vpmaddubsw ymm3,ymm1,ymm3
     209  vpaddw ymm6,ymm6,ymm2
     20d  vpaddw ymm7,ymm7,ymm3
     211  vmovdqu ymm0,[r10+240h]
     21a  vmovdqu ymm1,[r10+260h]
     223  vpbroadcastd ymm3,[r11+1Ch]
     229  vpmaddubsw ymm2,ymm0,ymm3
     22e  vpmaddubsw ymm3,ymm1,ymm3
     233  vpaddw ymm4,ymm4,ymm2
     237  vpaddw ymm5,ymm5,ymm3
     23b  vpbroadcastd ymm3,[r11+3Ch]
     241  vpmaddubsw ymm2,ymm0,ymm3
     246  vpmaddubsw ymm3,ymm1,ymm3
     24b  vpaddw ymm6,ymm6,ymm2
     24f  vpaddw ymm7,ymm7,ymm3
     253  vmovups ymm0,[r10]
     258  vmovups ymm1,[r10+20h]
     25e  vpbroadcastd ymm2,[rax]
     263  vbroadcastss ymm3,[r11+0C0h]
     26c  vpmaddwd ymm4,ymm4,ymm2
     270  vcvtdq2ps ymm4,ymm4
     274  vmulps ymm4,ymm4,ymm0
     278  vfmadd213ps ymm4,ymm3,[rbp]
     27e  vmovups [rbp],ymm4
     283  vpmaddwd ymm5,ymm5,ymm2
     287  vcvtdq2ps ymm5,ymm5
     28b  vmulps ymm5,ymm5,ymm1
     28f  vfmadd213ps ymm5,ymm3,[rbp+20h]
     295  vmovups [rbp+20h],ymm5
     29a  vbroadcastss ymm3,[r11+0C4h]
     2a3  vpmaddwd ymm6,ymm6,ymm2
     2a7  vcvtdq2ps ymm6,ymm6
     2ab  vmulps ymm6,ymm6,ymm0
     2af  vfmadd213ps ymm6,ymm3,[rbp+r8]
     2b6  vmovups [rbp+r8],ymm6
     2bd  vpmaddwd ymm7,ymm7,ymm2
     2c1  vcvtdq2ps ymm7,ymm7
     2c5  vmulps ymm7,ymm7,ymm1
     2c9  vfmadd213ps ymm7,ymm3,[rbp+r8+20h]
     2d0  vmovups [rbp+r8+20h],ymm7
     2d7  add r10,280h
     2de  add r11,100h
     2e5  dec rbx
     2e8  jne near 0000000000000020h
     2ee  vzeroupper
     2f1  pop r12
     2f3  pop rbp
     2f4  pop rbx
     2f5  ret
     2f6  add [rax],eax
     2f8  add [rax],eax

decode_mxfp4:
     300  lea r8,[rel 540h]
     307  vmovdqu ymm0,[r8+20h]
     30d  test rcx,rcx
     310  je near 000000000000050Ch
     316  vpmovzxbd ymm9,[rdi]
     31b  vpslld ymm9,ymm9,17h
     321  vpmaxud ymm9,ymm9,[r8+80h]
     32a  vmulps ymm9,ymm9,[r8+0A0h]
     333  vmulps ymm10,ymm9,[r8+0E0h]
     33c  vmovups [rdx],ymm9
     340  vmovups [rdx+40h],ymm10
     345  vpmovzxbd ymm9,[rdi+8]
     34b  vpslld ymm9,ymm9,17h
     351  vpmaxud ymm9,ymm9,[r8+80h]
     35a  vmulps ymm9,ymm9,[r8+0A0h]
     363  vmulps ymm10,ymm9,[r8+0E0h]
     36c  vmovups [rdx+20h],ymm9
     371  vmovups [rdx+60h],ymm10
     376  vmovdqu ymm1,[rsi]
     37a  vpsrlw ymm2,ymm1,4
     37f  vpand ymm1,ymm1,[r8]
     384  vpand ymm2,ymm2,[r8]
     389  vpshufb ymm1,ymm0,ymm1
     38e  vpshufb ymm2,ymm0,ymm2
     393  vmovdqu [rdx+80h],ymm1
     39b  vmovdqu [rdx+0C0h],ymm2
     3a3  vmovdqu ymm3,[rsi+20h]
     3a8  vpsrlw ymm4,ymm3,4
     3ad  vpand ymm3,ymm3,[r8]
     3b2  vpand ymm4,ymm4,[r8]
     3b7  vpshufb ymm3,ymm0,ymm3
     3bc  vpshufb ymm4,ymm0,ymm4
     3c1  vmovdqu [rdx+0A0h],ymm3
     3c9  vmovdqu [rdx+0E0h],ymm4
     3d1  vmovdqu ymm5,[rsi+40h]
     3d6  vpsrlw ymm6,ymm5,4
     3db  vpand ymm5,ymm5,[r8]
     3e0  vpand ymm6,ymm6,[r8]
     3e5  vpshufb ymm5,ymm0,ymm5
     3ea  vpshufb ymm6,ymm0,ymm6
     3ef  vmovdqu [rdx+100h],ymm5
     3f7  vmovdqu [rdx+140h],ymm6
     3ff  vmovdqu ymm7,[rsi+60h]
     404  vpsrlw ymm8,ymm7,4
     409  vpand ymm7,ymm7,[r8]
     40e  vpand ymm8,ymm8,[r8]
     413  vpshufb ymm7,ymm0,ymm7
     418  vpshufb ymm8,ymm0,ymm8
     41d  vmovdqu [rdx+120h],ymm7
     425  vmovdqu [rdx+160h],ymm8
     42d  vmovdqu ymm1,[rsi+80h]
     435  vpsrlw ymm2,ymm1,4
     43a  vpand ymm1,ymm1,[r8]
     43f  vpand ymm2,ymm2,[r8]
     444  vpshufb ymm1,ymm0,ymm1
     449  vpshufb ymm2,ymm0,ymm2
     44e  vmovdqu [rdx+180h],ymm1
     456  vmovdqu [rdx+1C0h],ymm2
     45e  vmovdqu ymm3,[rsi+0A0h]
     466  vpsrlw ymm4,ymm3,4
     46b  vpand ymm3,ymm3,[r8]
     470  vpand ymm4,ymm4,[r8]
     475  vpshufb ymm3,ymm0,ymm3
     47a  vpshufb ymm4,ymm0,ymm4
     47f  vmovdqu [rdx+1A0h],ymm3
     487  vmovdqu [rdx+1E0h],ymm4
     48f  vmovdqu ymm5,[rsi+0C0h]
     497  vpsrlw ymm6,ymm5,4
     49c  vpand ymm5,ymm5,[r8]
     4a1  vpand ymm6,ymm6,[r8]
     4a6  vpshufb ymm5,ymm0,ymm5
     4ab  vpshufb ymm6,ymm0,ymm6
     4b0  vmovdqu [rdx+200h],ymm5
     4b8  vmovdqu [rdx+240h],ymm6
     4c0  vmovdqu ymm7,[rsi+0E0h]
     4c8  vpsrlw ymm8,ymm7,4
     4cd  vpand ymm7,ymm7,[r8]
     4d2  vpand ymm8,ymm8,[r8]
     4d7  vpshufb ymm7,ymm0,ymm7
     4dc  vpshufb ymm8,ymm0,ymm8
     4e1  vmovdqu [rdx+220h],ymm7
     4e9  vmovdqu [rdx+260h],ymm8
     4f1  add rdi,10h
     4f5  add rsi,100h
     4fc  add rdx,280h
     503  dec rcx
     506  jne near 0000000000000316h
     50c  vzeroupper
     50f  ret
     510  add [rax],al
     512  add [rax],al
     514  add [rax],al
     516  add [rax],al
     518  add [rax],al
     51a  add [rax],al
     51c  add [rax],al
     51e  add [rax],al
     520  add [rax],al
     522  add [rax],al
     524  add [rax],al
     526  add [rax],al
     528  add [rax],al
     52a  add [rax],al
     52c  add [rax],al
     52e  add [rax],al
     530  add [rax],al
     532  add [rax],al
     534  add [rax],al
     536  add [rax],al
     538  add [rax],al
     53a  add [rax],al
     53c  add [rax],al
     53e  add [rax],al
     540  (bad)
     544  (bad)
     548  (bad)
     54c  (bad)
     550  (bad)
     554  (bad)
     558  (bad)
     55c  (bad)
     560  or al,0Dh
     562  (bad)
     564  adc [rdx],dl
     566  adc al,18h
     568  or al,0Bh
     56a  or cl,[rcx]
     56c  or [rsi],al
     56e  add al,0
     570  or al,0Dh
     572  (bad)
     574  adc [rdx],dl
     576  adc al,18h
     578  or al,0Bh
     57a  or cl,[rcx]
     57c  or [rsi],al
     57e  add al,0
     580  add [rax],eax
     582  add [rax],eax
     584  add [rax],eax
     586  add [rax],eax
     588  add [rax],eax
     58a  add [rax],eax
     58c  add [rax],eax
     58e  add [rax],eax
     590  add [rax],eax
     592  add [rax],eax
     594  add [rax],eax
     596  add [rax],eax
     598  add [rax],eax
     59a  add [rax],eax
     59c  add [rax],eax
     59e  add [rax],eax
     5a0  add byte [rax-7F7F7F80h],80h
     5a7  add byte [rax-7F7F7F80h],80h
     5ae  add byte [rax-7F7F7F80h],80h
     5b5  add byte [rax-7F7F7F80h],80h
     5bc  add byte [rax+8080h],40h
     5c3  add [rax],al
     5c5  add [rax],al
     5c8  add [rax],al
     5ca  add [rax],al
     5cd  add [rax],al
     5d0  add [rax],al
     5d2  add [rax],al
     5d5  add [rax],al
     5d8  add [rax],al
     5da  add [rax],al
     5dd  add [rax],al
     5e0  add [rax],al
     5e2  add [rdi],bh
     5e4  add [rax],al
     5e6  add [rdi],bh
     5e8  add [rax],al
     5ea  add [rdi],bh
     5ec  add [rax],al
     5ee  add [rdi],bh
     5f0  add [rax],al
     5f2  add [rdi],bh
     5f4  add [rax],al
     5f6  add [rdi],bh
     5f8  add [rax],al
     5fa  add [rdi],bh
     5fc  add [rax],al
     5fe  add [rdi],bh
     600  hlt
     601  (bad)
     603  push rsp
     605  (bad)
     607  push rsp
     609  (bad)
     60b  push rsp
     60d  (bad)
     60f  push rsp
     611  (bad)
     613  push rsp
     615  (bad)
     617  push rsp
     619  (bad)
     61b  push rsp
     61d  (bad)
     61f  inc dword [rax]
     621  add [rax-35h],al
     624  add [rax],al
     626  retf
     628  add [rax],al
     62a  retf
     62c  add [rax],al
     62e  retf
     630  add [rax],al
     632  retf
     634  add [rax],al
     636  retf
     638  add [rax],al
     63a  retf
     63c  add [rax],al
     63e  retf
