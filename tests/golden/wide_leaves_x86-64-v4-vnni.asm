dot_mxfp4_q8_k64_t1:
       0  push rcx
       1  push rdx
       2  mov rax,rsi
       5  mov rcx,[rax]
       8  lea rsi,[rdi+40h]
       c  lea rax,[rel 170h]
      13  vpbroadcastd zmm1,[rax]
      19  vpbroadcastd zmm2,[rax+4]
      20  vpbroadcastd zmm3,[rax+8]
      27  vbroadcasti32x4 zmm0,[rax+10h]
      2e  vpxord zmm8,zmm8,zmm8
      34  xor rdx,rdx
      37  imul eax,[rcx+rdx+48h],0FFFFFFF4h
      3c  vpbroadcastd zmm7,eax
      42  vmovdqu64 zmm5,[rsi]
      48  vpsrlw zmm6,zmm5,4
      4f  vpandd zmm5,zmm5,zmm1
      55  vpandd zmm6,zmm6,zmm1
      5b  vpshufb zmm5,zmm0,zmm5
      61  vpshufb zmm6,zmm0,zmm6
      67  vpdpbusd zmm7,zmm5,[rcx+rdx*8]{1to16}
      6e  vpdpbusd zmm7,zmm6,[rcx+rdx*8+4]{1to16}
      76  vmovdqu64 zmm5,[rsi+40h]
      7d  vpsrlw zmm6,zmm5,4
      84  vpandd zmm5,zmm5,zmm1
      8a  vpandd zmm6,zmm6,zmm1
      90  vpshufb zmm5,zmm0,zmm5
      96  vpshufb zmm6,zmm0,zmm6
      9c  vpdpbusd zmm7,zmm5,[rcx+rdx*8+8]{1to16}
      a4  vpdpbusd zmm7,zmm6,[rcx+rdx*8+0Ch]{1to16}
      ac  vmovdqu64 zmm5,[rsi+80h]
      b3  vpsrlw zmm6,zmm5,4
      ba  vpandd zmm5,zmm5,zmm1
      c0  vpandd zmm6,zmm6,zmm1
      c6  vpshufb zmm5,zmm0,zmm5
      cc  vpshufb zmm6,zmm0,zmm6
      d2  vpdpbusd zmm7,zmm5,[rcx+rdx*8+10h]{1to16}
      da  vpdpbusd zmm7,zmm6,[rcx+rdx*8+14h]{1to16}
      e2  vmovdqu64 zmm5,[rsi+0C0h]
      e9  vpsrlw zmm6,zmm5,4
      f0  vpandd zmm5,zmm5,zmm1
      f6  vpandd zmm6,zmm6,zmm1
      fc  vpshufb zmm5,zmm0,zmm5
     102  vpshufb zmm6,zmm0,zmm6
     108  vpdpbusd zmm7,zmm5,[rcx+rdx*8+18h]{1to16}
     110  vpdpbusd zmm7,zmm6,[rcx+rdx*8+1Ch]{1to16}
     118  vpmovzxbd zmm4,[rdi]
     11e  vptestnmd k1,zmm4,zmm4
     124  vpslld zmm4,zmm4,17h
     12b  vmovdqa32 zmm4{k1},zmm3
     131  add rdi,10h
     135  vmulps zmm5,zmm2,[rcx+rdx+40h]{1to16}
     13d  vmulps zmm5,zmm4,zmm5
     143  vcvtdq2ps zmm7,zmm7
     149  vfmadd231ps zmm8,zmm7,zmm5
     14f  add rsi,100h
     156  add rdx,4
     15a  cmp rdx,8
     15e  jne near 0000000000000037h
     164  pop rsi
     165  pop rdx
     166  vmovups [rsi],zmm8
     16c  vzeroupper
     16f  ret
     170  (bad)
     174  add [rax],al
     176  add [rdi],bh
     178  add [rax],al
     17a  add [rax],al
     17d  add [rax],al
     17f  add [rcx*1+12100F0Eh],cl
     186  adc al,18h
     188  or al,0Bh
     18a  or cl,[rcx]
     18c  or [rsi],al
     18e  add al,0

dot_int8_q8_k64_t2:
     1c0  push rcx
     1c1  push rdx
     1c2  mov rax,rsi
     1c5  mov rcx,[rax]
     1c8  mov r8,[rax+8]
     1cc  lea rsi,[rdi+40h]
     1d0  vpxord zmm9,zmm9,zmm9
     1d6  vpxord zmm10,zmm10,zmm10
     1dc  xor rdx,rdx
     1df  imul eax,[rcx+rdx+48h],0FFFFFF80h
     1e4  vpbroadcastd zmm7,eax
     1ea  imul eax,[r8+rdx+48h],0FFFFFF80h
     1f0  vpbroadcastd zmm8,eax
     1f6  vmovdqu64 zmm5,[rsi]
     1fc  vpdpbusd zmm7,zmm5,[rcx+rdx*8]{1to16}
     203  vpdpbusd zmm8,zmm5,[r8+rdx*8]{1to16}
     20a  vmovdqu64 zmm5,[rsi+40h]
     211  vpdpbusd zmm7,zmm5,[rcx+rdx*8+4]{1to16}
     219  vpdpbusd zmm8,zmm5,[r8+rdx*8+4]{1to16}
     221  vmovdqu64 zmm5,[rsi+80h]
     228  vpdpbusd zmm7,zmm5,[rcx+rdx*8+8]{1to16}
     230  vpdpbusd zmm8,zmm5,[r8+rdx*8+8]{1to16}
     238  vmovdqu64 zmm5,[rsi+0C0h]
     23f  vpdpbusd zmm7,zmm5,[rcx+rdx*8+0Ch]{1to16}
     247  vpdpbusd zmm8,zmm5,[r8+rdx*8+0Ch]{1to16}
     24f  vmovdqu64 zmm5,[rsi+100h]
     256  vpdpbusd zmm7,zmm5,[rcx+rdx*8+10h]{1to16}
     25e  vpdpbusd zmm8,zmm5,[r8+rdx*8+10h]{1to16}
     266  vmovdqu64 zmm5,[rsi+140h]
     26d  vpdpbusd zmm7,zmm5,[rcx+rdx*8+14h]{1to16}
     275  vpdpbusd zmm8,zmm5,[r8+rdx*8+14h]{1to16}
     27d  vmovdqu64 zmm5,[rsi+180h]
     284  vpdpbusd zmm7,zmm5,[rcx+rdx*8+18h]{1to16}
     28c  vpdpbusd zmm8,zmm5,[r8+rdx*8+18h]{1to16}
     294  vmovdqu64 zmm5,[rsi+1C0h]
     29b  vpdpbusd zmm7,zmm5,[rcx+rdx*8+1Ch]{1to16}
     2a3  vpdpbusd zmm8,zmm5,[r8+rdx*8+1Ch]{1to16}
     2ab  vcvtph2ps zmm4,[rdi]
     2b1  add rdi,20h
     2b5  vmulps zmm5,zmm4,[rcx+rdx+40h]{1to16}
     2bd  vcvtdq2ps zmm7,zmm7
     2c3  vfmadd231ps zmm9,zmm7,zmm5
     2c9  vmulps zmm5,zmm4,[r8+rdx+40h]{1to16}
     2d1  vcvtdq2ps zmm8,zmm8
     2d7  vfmadd231ps zmm10,zmm8,zmm5
     2dd  add rsi,200h
     2e4  add rdx,4
     2e8  cmp rdx,8
     2ec  jne near 00000000000001DFh
     2f2  pop rsi
     2f3  pop rdx
     2f4  vmovups [rsi],zmm9
     2fa  add rsi,rdx
     2fd  vmovups [rsi],zmm10
     303  vzeroupper
     306  ret

dot_bf16_f32_k64_t1:
     340  mov r8,[rsi]
     343  vpbroadcastd zmm4,[rel 3E2h]
     34d  vpxord zmm5,zmm5,zmm5
     353  vpxord zmm6,zmm6,zmm6
     359  vpxord zmm7,zmm7,zmm7
     35f  vpxord zmm8,zmm8,zmm8
     365  xor r9,r9
     368  vmovdqu32 zmm0,[rdi]
     36e  vpslld zmm0,zmm0,10h
     375  vfmadd231ps zmm5,zmm0,[r8+r9]{1to16}
     37c  vpandd zmm1,zmm4,[rdi]
     382  vfmadd231ps zmm6,zmm1,[r8+r9+4]{1to16}
     38a  vmovdqu32 zmm2,[rdi+40h]
     391  vpslld zmm2,zmm2,10h
     398  vfmadd231ps zmm7,zmm2,[r8+r9+8]{1to16}
     3a0  vpandd zmm3,zmm4,[rdi+40h]
     3a7  vfmadd231ps zmm8,zmm3,[r8+r9+0Ch]{1to16}
     3af  add rdi,80h
     3b6  add r9,10h
     3ba  cmp r9,100h
     3c1  jne short 0000000000000368h
     3c3  vaddps zmm5,zmm5,zmm6
     3c9  vaddps zmm7,zmm7,zmm8
     3cf  vaddps zmm5,zmm5,zmm7
     3d5  vmovups [rdx],zmm5
     3db  add rdx,rcx
     3de  vzeroupper
     3e1  ret
     3e2  add [rax],al
     3e4  (bad)

score_F16_d32_g2_s3e000000:
     400  vpbroadcastd zmm1,[rel 4EFh]
     40a  vpxord zmm2,zmm2,zmm2
     410  vpxord zmm3,zmm3,zmm3
     416  vpxord zmm4,zmm4,zmm4
     41c  vpxord zmm5,zmm5,zmm5
     422  vpxord zmm6,zmm6,zmm6
     428  vpxord zmm7,zmm7,zmm7
     42e  vpxord zmm8,zmm8,zmm8
     434  vpxord zmm9,zmm9,zmm9
     43a  mov rcx,rdi
     43d  xor r8,r8
     440  vcvtph2ps zmm0,[rcx]
     446  vfmadd231ps zmm2,zmm0,[rsi+r8]{1to16}
     44d  vfmadd231ps zmm6,zmm0,[rsi+r8+80h]{1to16}
     455  vcvtph2ps zmm0,[rcx+20h]
     45c  vfmadd231ps zmm3,zmm0,[rsi+r8+4]{1to16}
     464  vfmadd231ps zmm7,zmm0,[rsi+r8+84h]{1to16}
     46c  vcvtph2ps zmm0,[rcx+40h]
     473  vfmadd231ps zmm4,zmm0,[rsi+r8+8]{1to16}
     47b  vfmadd231ps zmm8,zmm0,[rsi+r8+88h]{1to16}
     483  vcvtph2ps zmm0,[rcx+60h]
     48a  vfmadd231ps zmm5,zmm0,[rsi+r8+0Ch]{1to16}
     492  vfmadd231ps zmm9,zmm0,[rsi+r8+8Ch]{1to16}
     49a  add rcx,80h
     4a1  add r8,10h
     4a5  cmp r8,80h
     4ac  jne short 0000000000000440h
     4ae  vaddps zmm2,zmm2,zmm3
     4b4  vaddps zmm4,zmm4,zmm5
     4ba  vaddps zmm2,zmm2,zmm4
     4c0  vmulps zmm2,zmm2,zmm1
     4c6  vmovups [rdx],zmm2
     4cc  vaddps zmm6,zmm6,zmm7
     4d2  vaddps zmm8,zmm8,zmm9
     4d8  vaddps zmm6,zmm6,zmm8
     4de  vmulps zmm6,zmm6,zmm1
     4e4  vmovups [rdx+1000h],zmm6
     4eb  vzeroupper
     4ee  ret
     4ef  add [rax],al
     4f1  add [rsi],bh

value_F16_d32_g2:
     500  cmp rcx,r8
     503  jge near 0000000000000589h
     509  imul r9,rcx,40h
     50d  add rdi,r9
     510  vmovups zmm4,[rdx]
     516  vmovups zmm5,[rdx+40h]
     51d  vmovups zmm8,[rdx+80h]
     524  vmovups zmm9,[rdx+0C0h]
     52b  mov r9,rdi
     52e  mov rax,rcx
     531  vcvtph2ps zmm0,[r9]
     537  vcvtph2ps zmm1,[r9+20h]
     53e  vfmadd231ps zmm4,zmm0,[rsi+rax*4]{1to16}
     545  vfmadd231ps zmm5,zmm1,[rsi+rax*4]{1to16}
     54c  vfmadd231ps zmm8,zmm0,[rsi+rax*4+1000h]{1to16}
     557  vfmadd231ps zmm9,zmm1,[rsi+rax*4+1000h]{1to16}
     562  add r9,40h
     566  inc rax
     569  cmp rax,r8
     56c  jl short 0000000000000531h
     56e  vmovups [rdx],zmm4
     574  vmovups [rdx+40h],zmm5
     57b  vmovups [rdx+80h],zmm8
     582  vmovups [rdx+0C0h],zmm9
     589  vzeroupper
     58c  ret
