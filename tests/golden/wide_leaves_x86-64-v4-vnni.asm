dot_mxfp4_q8_k64_t1:
       0  push rcx
       1  push rdx
       2  mov rax,rsi
       5  mov rcx,[rax]
       8  lea rsi,[rdi+40h]
       c  lea r8,[rdi+2000h]
      13  lea rax,[rel 269h]
      1a  vpbroadcastd zmm2,[rax+4]
      21  vpbroadcastd zmm3,[rax+8]
      28  vmovdqu64 zmm0,[rax+10h]
      32  vpxord zmm8,zmm8,zmm8
      38  xor rdx,rdx
      3b  prefetcht1 [r8]
      3f  prefetcht1 [r8+40h]
      44  prefetcht1 [r8+80h]
      4c  prefetcht1 [r8+0C0h]
      54  prefetcht1 [r8+100h]
      5c  prefetcht1 [r8+140h]
      64  prefetcht1 [r8+180h]
      6c  prefetcht1 [r8+1C0h]
      74  prefetcht1 [r8+200h]
      7c  add r8,220h
      83  imul eax,[rcx+rdx+48h],0FFFFFFF4h
      88  vpbroadcastd zmm7,eax
      8e  vmovdqu64 zmm5,[rsi]
      94  vpsrlw zmm6,zmm5,4
      9b  vpermb zmm5,zmm5,zmm0
      a1  vpermb zmm6,zmm6,zmm0
      a7  vpdpbusd zmm7,zmm5,[rcx+rdx*8]{1to16}
      ae  vpdpbusd zmm7,zmm6,[rcx+rdx*8+4]{1to16}
      b6  vmovdqu64 zmm5,[rsi+40h]
      bd  vpsrlw zmm6,zmm5,4
      c4  vpermb zmm5,zmm5,zmm0
      ca  vpermb zmm6,zmm6,zmm0
      d0  vpdpbusd zmm7,zmm5,[rcx+rdx*8+8]{1to16}
      d8  vpdpbusd zmm7,zmm6,[rcx+rdx*8+0Ch]{1to16}
      e0  vmovdqu64 zmm5,[rsi+80h]
      e7  vpsrlw zmm6,zmm5,4
      ee  vpermb zmm5,zmm5,zmm0
      f4  vpermb zmm6,zmm6,zmm0
      fa  vpdpbusd zmm7,zmm5,[rcx+rdx*8+10h]{1to16}
     102  vpdpbusd zmm7,zmm6,[rcx+rdx*8+14h]{1to16}
     10a  vmovdqu64 zmm5,[rsi+0C0h]
     111  vpsrlw zmm6,zmm5,4
     118  vpermb zmm5,zmm5,zmm0
     11e  vpermb zmm6,zmm6,zmm0
     124  vpdpbusd zmm7,zmm5,[rcx+rdx*8+18h]{1to16}
     12c  vpdpbusd zmm7,zmm6,[rcx+rdx*8+1Ch]{1to16}
     134  vpmovzxbd zmm4,[rdi]
     13a  vpslld zmm4,zmm4,17h
     141  vpmaxud zmm4,zmm4,zmm3
     147  vmulps zmm4,zmm4,zmm2
     14d  add rdi,10h
     151  vcvtdq2ps zmm7,zmm7
     157  vmulps zmm7,zmm7,zmm4
     15d  vfmadd231ps zmm8,zmm7,[rcx+rdx+40h]{1to16}
     165  add rsi,100h
     16c  add rdx,4
     170  imul eax,[rcx+rdx+48h],0FFFFFFF4h
     175  vpbroadcastd zmm7,eax
     17b  vmovdqu64 zmm5,[rsi]
     181  vpsrlw zmm6,zmm5,4
     188  vpermb zmm5,zmm5,zmm0
     18e  vpermb zmm6,zmm6,zmm0
     194  vpdpbusd zmm7,zmm5,[rcx+rdx*8]{1to16}
     19b  vpdpbusd zmm7,zmm6,[rcx+rdx*8+4]{1to16}
     1a3  vmovdqu64 zmm5,[rsi+40h]
     1aa  vpsrlw zmm6,zmm5,4
     1b1  vpermb zmm5,zmm5,zmm0
     1b7  vpermb zmm6,zmm6,zmm0
     1bd  vpdpbusd zmm7,zmm5,[rcx+rdx*8+8]{1to16}
     1c5  vpdpbusd zmm7,zmm6,[rcx+rdx*8+0Ch]{1to16}
     1cd  vmovdqu64 zmm5,[rsi+80h]
     1d4  vpsrlw zmm6,zmm5,4
     1db  vpermb zmm5,zmm5,zmm0
     1e1  vpermb zmm6,zmm6,zmm0
     1e7  vpdpbusd zmm7,zmm5,[rcx+rdx*8+10h]{1to16}
     1ef  vpdpbusd zmm7,zmm6,[rcx+rdx*8+14h]{1to16}
     1f7  vmovdqu64 zmm5,[rsi+0C0h]
     1fe  vpsrlw zmm6,zmm5,4
     205  vpermb zmm5,zmm5,zmm0
     20b  vpermb zmm6,zmm6,zmm0
     211  vpdpbusd zmm7,zmm5,[rcx+rdx*8+18h]{1to16}
     219  vpdpbusd zmm7,zmm6,[rcx+rdx*8+1Ch]{1to16}
     221  vpmovzxbd zmm4,[rdi]
     227  vpslld zmm4,zmm4,17h
     22e  vpmaxud zmm4,zmm4,zmm3
     234  vmulps zmm4,zmm4,zmm2
     23a  add rdi,10h
     23e  vcvtdq2ps zmm7,zmm7
     244  vmulps zmm7,zmm7,zmm4
     24a  vfmadd231ps zmm8,zmm7,[rcx+rdx+40h]{1to16}
     252  add rsi,100h
     259  add rdx,4
     25d  pop rsi
     25e  pop rdx
     25f  vmovups [rsi],zmm8
     265  vzeroupper
     268  ret
     269  (bad)
     26d  add [rax],al
     26f  add [rdi],bh
     271  add [rax],al
     273  add [rax],al
     276  add [rax],al
     278  add [rcx*1+12100F0Eh],cl
     27f  adc al,18h
     281  or al,0Bh
     283  or cl,[rcx]
     285  or [rsi],al
     287  add al,0
     289  or al,0Dh
     28b  (bad)
     28d  adc [rdx],dl
     28f  adc al,18h
     291  or al,0Bh
     293  or cl,[rcx]
     295  or [rsi],al
     297  add al,0
     299  or al,0Dh
     29b  (bad)
     29d  adc [rdx],dl
     29f  adc al,18h
     2a1  or al,0Bh
     2a3  or cl,[rcx]
     2a5  or [rsi],al
     2a7  add al,0
     2a9  or al,0Dh
     2ab  (bad)
     2ad  adc [rdx],dl
     2af  adc al,18h
     2b1  or al,0Bh
     2b3  or cl,[rcx]
     2b5  or [rsi],al
     2b7  add al,0

dot_int8_q8_k64_t2:
     2c0  push rcx
     2c1  push rdx
     2c2  mov rax,rsi
     2c5  mov rcx,[rax]
     2c8  mov r8,[rax+8]
     2cc  lea rsi,[rdi+40h]
     2d0  lea r9,[rdi+2000h]
     2d7  vpxord zmm9,zmm9,zmm9
     2dd  vpxord zmm10,zmm10,zmm10
     2e3  xor rdx,rdx
     2e6  prefetcht1 [r9]
     2ea  prefetcht1 [r9+40h]
     2ef  prefetcht1 [r9+80h]
     2f7  prefetcht1 [r9+0C0h]
     2ff  prefetcht1 [r9+100h]
     307  prefetcht1 [r9+140h]
     30f  prefetcht1 [r9+180h]
     317  prefetcht1 [r9+1C0h]
     31f  prefetcht1 [r9+200h]
     327  prefetcht1 [r9+240h]
     32f  prefetcht1 [r9+280h]
     337  prefetcht1 [r9+2C0h]
     33f  prefetcht1 [r9+300h]
     347  prefetcht1 [r9+340h]
     34f  prefetcht1 [r9+380h]
     357  prefetcht1 [r9+3C0h]
     35f  prefetcht1 [r9+400h]
     367  add r9,440h
     36e  imul eax,[rcx+rdx+48h],0FFFFFF80h
     373  vpbroadcastd zmm7,eax
     379  imul eax,[r8+rdx+48h],0FFFFFF80h
     37f  vpbroadcastd zmm8,eax
     385  vmovdqu64 zmm5,[rsi]
     38b  vpdpbusd zmm7,zmm5,[rcx+rdx*8]{1to16}
     392  vpdpbusd zmm8,zmm5,[r8+rdx*8]{1to16}
     399  vmovdqu64 zmm5,[rsi+40h]
     3a0  vpdpbusd zmm7,zmm5,[rcx+rdx*8+4]{1to16}
     3a8  vpdpbusd zmm8,zmm5,[r8+rdx*8+4]{1to16}
     3b0  vmovdqu64 zmm5,[rsi+80h]
     3b7  vpdpbusd zmm7,zmm5,[rcx+rdx*8+8]{1to16}
     3bf  vpdpbusd zmm8,zmm5,[r8+rdx*8+8]{1to16}
     3c7  vmovdqu64 zmm5,[rsi+0C0h]
     3ce  vpdpbusd zmm7,zmm5,[rcx+rdx*8+0Ch]{1to16}
     3d6  vpdpbusd zmm8,zmm5,[r8+rdx*8+0Ch]{1to16}
     3de  vmovdqu64 zmm5,[rsi+100h]
     3e5  vpdpbusd zmm7,zmm5,[rcx+rdx*8+10h]{1to16}
     3ed  vpdpbusd zmm8,zmm5,[r8+rdx*8+10h]{1to16}
     3f5  vmovdqu64 zmm5,[rsi+140h]
     3fc  vpdpbusd zmm7,zmm5,[rcx+rdx*8+14h]{1to16}
     404  vpdpbusd zmm8,zmm5,[r8+rdx*8+14h]{1to16}
     40c  vmovdqu64 zmm5,[rsi+180h]
     413  vpdpbusd zmm7,zmm5,[rcx+rdx*8+18h]{1to16}
     41b  vpdpbusd zmm8,zmm5,[r8+rdx*8+18h]{1to16}
     423  vmovdqu64 zmm5,[rsi+1C0h]
     42a  vpdpbusd zmm7,zmm5,[rcx+rdx*8+1Ch]{1to16}
     432  vpdpbusd zmm8,zmm5,[r8+rdx*8+1Ch]{1to16}
     43a  vcvtph2ps zmm4,[rdi]
     440  add rdi,20h
     444  vcvtdq2ps zmm7,zmm7
     44a  vmulps zmm7,zmm7,zmm4
     450  vfmadd231ps zmm9,zmm7,[rcx+rdx+40h]{1to16}
     458  vcvtdq2ps zmm8,zmm8
     45e  vmulps zmm8,zmm8,zmm4
     464  vfmadd231ps zmm10,zmm8,[r8+rdx+40h]{1to16}
     46c  add rsi,200h
     473  add rdx,4
     477  imul eax,[rcx+rdx+48h],0FFFFFF80h
     47c  vpbroadcastd zmm7,eax
     482  imul eax,[r8+rdx+48h],0FFFFFF80h
     488  vpbroadcastd zmm8,eax
     48e  vmovdqu64 zmm5,[rsi]
     494  vpdpbusd zmm7,zmm5,[rcx+rdx*8]{1to16}
     49b  vpdpbusd zmm8,zmm5,[r8+rdx*8]{1to16}
     4a2  vmovdqu64 zmm5,[rsi+40h]
     4a9  vpdpbusd zmm7,zmm5,[rcx+rdx*8+4]{1to16}
     4b1  vpdpbusd zmm8,zmm5,[r8+rdx*8+4]{1to16}
     4b9  vmovdqu64 zmm5,[rsi+80h]
     4c0  vpdpbusd zmm7,zmm5,[rcx+rdx*8+8]{1to16}
     4c8  vpdpbusd zmm8,zmm5,[r8+rdx*8+8]{1to16}
     4d0  vmovdqu64 zmm5,[rsi+0C0h]
     4d7  vpdpbusd zmm7,zmm5,[rcx+rdx*8+0Ch]{1to16}
     4df  vpdpbusd zmm8,zmm5,[r8+rdx*8+0Ch]{1to16}
     4e7  vmovdqu64 zmm5,[rsi+100h]
     4ee  vpdpbusd zmm7,zmm5,[rcx+rdx*8+10h]{1to16}
     4f6  vpdpbusd zmm8,zmm5,[r8+rdx*8+10h]{1to16}
     4fe  vmovdqu64 zmm5,[rsi+140h]
     505  vpdpbusd zmm7,zmm5,[rcx+rdx*8+14h]{1to16}
     50d  vpdpbusd zmm8,zmm5,[r8+rdx*8+14h]{1to16}
     515  vmovdqu64 zmm5,[rsi+180h]
     51c  vpdpbusd zmm7,zmm5,[rcx+rdx*8+18h]{1to16}
     524  vpdpbusd zmm8,zmm5,[r8+rdx*8+18h]{1to16}
     52c  vmovdqu64 zmm5,[rsi+1C0h]
     533  vpdpbusd zmm7,zmm5,[rcx+rdx*8+1Ch]{1to16}
     53b  vpdpbusd zmm8,zmm5,[r8+rdx*8+1Ch]{1to16}
     543  vcvtph2ps zmm4,[rdi]
     549  add rdi,20h
     54d  vcvtdq2ps zmm7,zmm7
     553  vmulps zmm7,zmm7,zmm4
     559  vfmadd231ps zmm9,zmm7,[rcx+rdx+40h]{1to16}
     561  vcvtdq2ps zmm8,zmm8
     567  vmulps zmm8,zmm8,zmm4
     56d  vfmadd231ps zmm10,zmm8,[r8+rdx+40h]{1to16}
     575  add rsi,200h
     57c  add rdx,4
     580  pop rsi
     581  pop rdx
     582  vmovups [rsi],zmm9
     588  add rsi,rdx
     58b  vmovups [rsi],zmm10
     591  vzeroupper
     594  ret

dot_bf16_f32_k64_t1:
     5c0  mov r8,[rsi]
     5c3  vpbroadcastd zmm4,[rel 662h]
     5cd  vpxord zmm5,zmm5,zmm5
     5d3  vpxord zmm6,zmm6,zmm6
     5d9  vpxord zmm7,zmm7,zmm7
     5df  vpxord zmm8,zmm8,zmm8
     5e5  xor r9,r9
     5e8  vmovdqu32 zmm0,[rdi]
     5ee  vpslld zmm0,zmm0,10h
     5f5  vfmadd231ps zmm5,zmm0,[r8+r9]{1to16}
     5fc  vpandd zmm1,zmm4,[rdi]
     602  vfmadd231ps zmm6,zmm1,[r8+r9+4]{1to16}
     60a  vmovdqu32 zmm2,[rdi+40h]
     611  vpslld zmm2,zmm2,10h
     618  vfmadd231ps zmm7,zmm2,[r8+r9+8]{1to16}
     620  vpandd zmm3,zmm4,[rdi+40h]
     627  vfmadd231ps zmm8,zmm3,[r8+r9+0Ch]{1to16}
     62f  add rdi,80h
     636  add r9,10h
     63a  cmp r9,100h
     641  jne short 00000000000005E8h
     643  vaddps zmm5,zmm5,zmm6
     649  vaddps zmm7,zmm7,zmm8
     64f  vaddps zmm5,zmm5,zmm7
     655  vmovups [rdx],zmm5
     65b  add rdx,rcx
     65e  vzeroupper
     661  ret
     662  add [rax],al
     664  (bad)

score_F16_d32_g2_s3e000000:
     680  vpbroadcastd zmm1,[rel 77Dh]
     68a  vpxord zmm2,zmm2,zmm2
     690  vpxord zmm3,zmm3,zmm3
     696  vpxord zmm4,zmm4,zmm4
     69c  vpxord zmm5,zmm5,zmm5
     6a2  vpxord zmm6,zmm6,zmm6
     6a8  vpxord zmm7,zmm7,zmm7
     6ae  vpxord zmm8,zmm8,zmm8
     6b4  vpxord zmm9,zmm9,zmm9
     6ba  mov r8,rdi
     6bd  xor r9,r9
     6c0  prefetcht1 [rcx]
     6c3  prefetcht1 [rcx+40h]
     6c7  add rcx,80h
     6ce  vcvtph2ps zmm0,[r8]
     6d4  vfmadd231ps zmm2,zmm0,[rsi+r9]{1to16}
     6db  vfmadd231ps zmm6,zmm0,[rsi+r9+80h]{1to16}
     6e3  vcvtph2ps zmm0,[r8+20h]
     6ea  vfmadd231ps zmm3,zmm0,[rsi+r9+4]{1to16}
     6f2  vfmadd231ps zmm7,zmm0,[rsi+r9+84h]{1to16}
     6fa  vcvtph2ps zmm0,[r8+40h]
     701  vfmadd231ps zmm4,zmm0,[rsi+r9+8]{1to16}
     709  vfmadd231ps zmm8,zmm0,[rsi+r9+88h]{1to16}
     711  vcvtph2ps zmm0,[r8+60h]
     718  vfmadd231ps zmm5,zmm0,[rsi+r9+0Ch]{1to16}
     720  vfmadd231ps zmm9,zmm0,[rsi+r9+8Ch]{1to16}
     728  add r8,80h
     72f  add r9,10h
     733  cmp r9,80h
     73a  jne short 00000000000006C0h
     73c  vaddps zmm2,zmm2,zmm3
     742  vaddps zmm4,zmm4,zmm5
     748  vaddps zmm2,zmm2,zmm4
     74e  vmulps zmm2,zmm2,zmm1
     754  vmovups [rdx],zmm2
     75a  vaddps zmm6,zmm6,zmm7
     760  vaddps zmm8,zmm8,zmm9
     766  vaddps zmm6,zmm6,zmm8
     76c  vmulps zmm6,zmm6,zmm1
     772  vmovups [rdx+1000h],zmm6
     779  vzeroupper
     77c  ret
     77d  add [rax],al
     77f  add [rsi],bh

value_F16_d32_g2:
     7c0  cmp rcx,r8
     7c3  jge near 0000000000000851h
     7c9  imul r10,rcx,40h
     7cd  add rdi,r10
     7d0  vmovups zmm4,[rdx]
     7d6  vmovups zmm5,[rdx+40h]
     7dd  vmovups zmm8,[rdx+80h]
     7e4  vmovups zmm9,[rdx+0C0h]
     7eb  mov r10,rdi
     7ee  mov r11,rcx
     7f1  prefetcht1 [r9]
     7f5  add r9,40h
     7f9  vcvtph2ps zmm0,[r10]
     7ff  vcvtph2ps zmm1,[r10+20h]
     806  vfmadd231ps zmm4,zmm0,[rsi+r11*4]{1to16}
     80d  vfmadd231ps zmm5,zmm1,[rsi+r11*4]{1to16}
     814  vfmadd231ps zmm8,zmm0,[rsi+r11*4+1000h]{1to16}
     81f  vfmadd231ps zmm9,zmm1,[rsi+r11*4+1000h]{1to16}
     82a  add r10,40h
     82e  inc r11
     831  cmp r11,r8
     834  jl short 00000000000007F1h
     836  vmovups [rdx],zmm4
     83c  vmovups [rdx+40h],zmm5
     843  vmovups [rdx+80h],zmm8
     84a  vmovups [rdx+0C0h],zmm9
     851  vzeroupper
     854  ret

map_n32_1e3898d682e799f0:
     880  lea rax,[rel 0A71h]
     887  vbroadcastss zmm29,[rax]
     88d  vbroadcastss zmm28,[rax+4]
     894  vbroadcastss zmm27,[rax+8]
     89b  vbroadcastss zmm26,[rax+0Ch]
     8a2  vbroadcastss zmm25,[rax+10h]
     8a9  vbroadcastss zmm24,[rax+14h]
     8b0  vbroadcastss zmm23,[rax+18h]
     8b7  vbroadcastss zmm31,[rax+1Ch]
     8be  vbroadcastss zmm22,[rax+20h]
     8c5  vbroadcastss zmm21,[rax+24h]
     8cc  vbroadcastss zmm20,[rax+28h]
     8d3  vbroadcastss zmm30,[rax+2Ch]
     8da  vbroadcastss zmm19,[rax+30h]
     8e1  vbroadcastss zmm18,[rax+34h]
     8e8  vbroadcastss zmm17,[rax+38h]
     8ef  test rcx,rcx
     8f2  je near 0000000000000A6Dh
     8f8  vmovups zmm0,[rsi]
     8fe  vminps zmm0,zmm0,zmm21
     904  vsubps zmm1,zmm29,zmm0
     90a  vminps zmm2,zmm1,zmm20
     910  vmovups zmm3,zmm30
     916  vfmadd231ps zmm3,zmm2,zmm22
     91c  vsubps zmm4,zmm3,zmm30
     922  vfmadd231ps zmm2,zmm4,zmm18
     928  vfmadd231ps zmm2,zmm4,zmm19
     92e  vmovups zmm4,zmm27
     934  vfmadd231ps zmm4,zmm28,zmm2
     93a  vfmadd213ps zmm4,zmm2,zmm26
     940  vfmadd213ps zmm4,zmm2,zmm25
     946  vfmadd213ps zmm4,zmm2,zmm24
     94c  vfmadd213ps zmm4,zmm2,zmm23
     952  vfmadd213ps zmm4,zmm2,zmm31
     958  vfmadd213ps zmm4,zmm2,zmm31
     95e  vpslld zmm2,zmm3,17h
     965  vpaddd zmm2,zmm2,zmm4
     96b  vcmpnltps k1,zmm1,zmm17
     972  vmovaps zmm3{k1}{z},zmm2
     978  vaddps zmm1,zmm31,zmm3
     97e  vdivps zmm1,zmm31,zmm1
     984  vmulps zmm0,zmm0,zmm1
     98a  vmovups zmm1,[rdx]
     990  vaddps zmm1,zmm1,zmm31
     996  vmulps zmm0,zmm0,zmm1
     99c  vmovups [rdi],zmm0
     9a2  vmovups zmm0,[rsi+40h]
     9a9  vminps zmm0,zmm0,zmm21
     9af  vsubps zmm1,zmm29,zmm0
     9b5  vminps zmm2,zmm1,zmm20
     9bb  vmovups zmm3,zmm30
     9c1  vfmadd231ps zmm3,zmm2,zmm22
     9c7  vsubps zmm4,zmm3,zmm30
     9cd  vfmadd231ps zmm2,zmm4,zmm18
     9d3  vfmadd231ps zmm2,zmm4,zmm19
     9d9  vmovups zmm4,zmm27
     9df  vfmadd231ps zmm4,zmm28,zmm2
     9e5  vfmadd213ps zmm4,zmm2,zmm26
     9eb  vfmadd213ps zmm4,zmm2,zmm25
     9f1  vfmadd213ps zmm4,zmm2,zmm24
     9f7  vfmadd213ps zmm4,zmm2,zmm23
     9fd  vfmadd213ps zmm4,zmm2,zmm31
     a03  vfmadd213ps zmm4,zmm2,zmm31
     a09  vpslld zmm2,zmm3,17h
     a10  vpaddd zmm2,zmm2,zmm4
     a16  vcmpnltps k1,zmm1,zmm17
     a1d  vmovaps zmm3{k1}{z},zmm2
     a23  vaddps zmm1,zmm31,zmm3
     a29  vdivps zmm1,zmm31,zmm1
     a2f  vmulps zmm0,zmm0,zmm1
     a35  vmovups zmm1,[rdx+40h]
     a3c  vaddps zmm1,zmm1,zmm31
     a42  vmulps zmm0,zmm0,zmm1
     a48  vmovups [rdi+40h],zmm0
     a4f  add rdi,100h
     a56  add rsi,100h
     a5d  add rdx,100h
     a64  dec rcx
     a67  jne near 00000000000008F8h
     a6d  vzeroupper
     a70  ret
     a71  add [rax],al
     a73  add [rax],al
     a75  imul edx,[eax+39h],3AB743CEh
     a7d  or [rcx-563EC3F8h],cl
     a83  sub bh,[rel 3E2AB533h]
     a89  add [rax],al
     a8b  add [rdi],bh
     a8d  add [rax],al
     a8f  cmp byte [rdi],3Bh
     a92  stosb
     a93  mov eax,0E000003Fh
     a98  add [rax],al
     a9b  mov al,42h
     a9d  add [rax],al
     a9f  (bad)
     aa7  xor [rdi-3D520000h],edi

quantize_q8:
     ac0  lea rax,[rel 0C01h]
     ac7  vpxord zmm15,zmm15,zmm15
     acd  vpbroadcastd zmm14,[rax+4]
     ad4  vpbroadcastd zmm13,[rax]
     ada  vpbroadcastd zmm12,[rax+8]
     ae1  vpbroadcastd zmm11,[rax+0Ch]
     ae8  vpbroadcastd zmm10,[rax+10h]
     aef  test r8,r8
     af2  je near 0000000000000BFDh
     af8  vmovups zmm0,[rdi]
     afe  vmovups zmm1,[rdi+40h]
     b05  vpandd zmm4,zmm0,zmm13
     b0b  vpandd zmm5,zmm1,zmm13
     b11  vpmaxsd zmm4,zmm4,zmm5
     b17  vextracti64x4 ymm5,zmm4,1
     b1e  vpmaxsd ymm4,ymm4,ymm5
     b23  vextracti128 xmm5,ymm4,1
     b29  vpmaxsd xmm4,xmm4,xmm5
     b2e  vpshufd xmm5,xmm4,4Eh
     b33  vpmaxsd xmm4,xmm4,xmm5
     b38  vpshufd xmm5,xmm4,0B1h
     b3d  vpmaxsd xmm4,xmm4,xmm5
     b42  vdivss xmm5,xmm4,xmm14
     b47  vmovss [rdx],xmm5
     b4b  vcmpneqps xmm5,xmm4,xmm15
     b51  vdivps xmm4,xmm14,xmm4
     b55  vandps xmm4,xmm4,xmm5
     b59  vbroadcastss zmm4,xmm4
     b5f  vmulps zmm0,zmm0,zmm4
     b65  vaddps zmm0,zmm0,zmm12
     b6b  vpsubd zmm0,zmm0,zmm12
     b71  vpmaxsd zmm0,zmm0,zmm11
     b77  vpminsd zmm0,zmm0,zmm10
     b7d  vpmovdb xmm5,zmm0
     b83  vmovdqu [rsi],xmm5
     b87  vmulps zmm1,zmm1,zmm4
     b8d  vaddps zmm1,zmm1,zmm12
     b93  vpsubd zmm1,zmm1,zmm12
     b99  vpmaxsd zmm1,zmm1,zmm11
     b9f  vpminsd zmm1,zmm1,zmm10
     ba5  vpmovdb xmm5,zmm1
     bab  vmovdqu [rsi+10h],xmm5
     bb0  vpaddd zmm4,zmm0,zmm1
     bb6  vextracti64x4 ymm5,zmm4,1
     bbd  vpaddd ymm4,ymm4,ymm5
     bc1  vextracti128 xmm5,ymm4,1
     bc7  vpaddd xmm4,xmm4,xmm5
     bcb  vpshufd xmm5,xmm4,4Eh
     bd0  vpaddd xmm4,xmm4,xmm5
     bd4  vpshufd xmm5,xmm4,0B1h
     bd9  vpaddd xmm4,xmm4,xmm5
     bdd  vmovd [rcx],xmm4
     be1  add rdi,80h
     be8  add rsi,20h
     bec  add rdx,4
     bf0  add rcx,4
     bf4  dec r8
     bf7  jne near 0000000000000AF8h
     bfd  vzeroupper
     c00  ret
     c01  (bad)
     c03  (bad)
     c05  add [rax],al
     c07  inc byte [rdx]
     c0a  add [rax+4Bh],al
     c0d  cmp bh,0FFh
     c10  (bad)
     c12  add [rax],al
     c14  add [rax],al
     c16  add [rax],al
     c18  add [rax+rax],al
     c1b  add [rax],al
     c1d  add [rax],eax
     c1f  add [rax],al
     c21  add eax,2000000h
     c26  add [rax],al
     c28  add [rsi],al
     c2a  add [rax],al
     c2c  add [rbx],al
     c2e  add [rax],al
     c30  add [rdi],al
     c32  add [rax],al
     c34  (bad)
