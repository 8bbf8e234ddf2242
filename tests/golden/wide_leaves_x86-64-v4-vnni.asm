dot_mxfp4_q8_k64_t1:
       0  push rcx
       1  push rdx
       2  mov rax,rsi
       5  mov rcx,[rax]
       8  lea rsi,[rdi+40h]
       c  lea r8,[rdi+2000h]
      13  lea rax,[rel 19Fh]
      1a  vpbroadcastd zmm1,[rax]
      20  vpbroadcastd zmm2,[rax+4]
      27  vpbroadcastd zmm3,[rax+8]
      2e  vbroadcasti32x4 zmm0,[rax+10h]
      35  vpxord zmm8,zmm8,zmm8
      3b  xor rdx,rdx
      3e  imul eax,[rcx+rdx+48h],0FFFFFFF4h
      43  vpbroadcastd zmm7,eax
      49  prefetcht1 [r8]
      4d  prefetcht1 [r8+40h]
      52  prefetcht1 [r8+80h]
      5a  prefetcht1 [r8+0C0h]
      62  prefetcht1 [r8+100h]
      6a  add r8,110h
      71  vmovdqu64 zmm5,[rsi]
      77  vpsrlw zmm6,zmm5,4
      7e  vpandd zmm5,zmm5,zmm1
      84  vpandd zmm6,zmm6,zmm1
      8a  vpshufb zmm5,zmm0,zmm5
      90  vpshufb zmm6,zmm0,zmm6
      96  vpdpbusd zmm7,zmm5,[rcx+rdx*8]{1to16}
      9d  vpdpbusd zmm7,zmm6,[rcx+rdx*8+4]{1to16}
      a5  vmovdqu64 zmm5,[rsi+40h]
      ac  vpsrlw zmm6,zmm5,4
      b3  vpandd zmm5,zmm5,zmm1
      b9  vpandd zmm6,zmm6,zmm1
      bf  vpshufb zmm5,zmm0,zmm5
      c5  vpshufb zmm6,zmm0,zmm6
      cb  vpdpbusd zmm7,zmm5,[rcx+rdx*8+8]{1to16}
      d3  vpdpbusd zmm7,zmm6,[rcx+rdx*8+0Ch]{1to16}
      db  vmovdqu64 zmm5,[rsi+80h]
      e2  vpsrlw zmm6,zmm5,4
      e9  vpandd zmm5,zmm5,zmm1
      ef  vpandd zmm6,zmm6,zmm1
      f5  vpshufb zmm5,zmm0,zmm5
      fb  vpshufb zmm6,zmm0,zmm6
     101  vpdpbusd zmm7,zmm5,[rcx+rdx*8+10h]{1to16}
     109  vpdpbusd zmm7,zmm6,[rcx+rdx*8+14h]{1to16}
     111  vmovdqu64 zmm5,[rsi+0C0h]
     118  vpsrlw zmm6,zmm5,4
     11f  vpandd zmm5,zmm5,zmm1
     125  vpandd zmm6,zmm6,zmm1
     12b  vpshufb zmm5,zmm0,zmm5
     131  vpshufb zmm6,zmm0,zmm6
     137  vpdpbusd zmm7,zmm5,[rcx+rdx*8+18h]{1to16}
     13f  vpdpbusd zmm7,zmm6,[rcx+rdx*8+1Ch]{1to16}
     147  vpmovzxbd zmm4,[rdi]
     14d  vptestnmd k1,zmm4,zmm4
     153  vpslld zmm4,zmm4,17h
     15a  vmovdqa32 zmm4{k1},zmm3
     160  add rdi,10h
     164  vmulps zmm5,zmm2,[rcx+rdx+40h]{1to16}
     16c  vmulps zmm5,zmm4,zmm5
     172  vcvtdq2ps zmm7,zmm7
     178  vfmadd231ps zmm8,zmm7,zmm5
     17e  add rsi,100h
     185  add rdx,4
     189  cmp rdx,8
     18d  jne near 000000000000003Eh
     193  pop rsi
     194  pop rdx
     195  vmovups [rsi],zmm8
     19b  vzeroupper
     19e  ret
     19f  (bad)
     1a3  add [rax],al
     1a5  add [rdi],bh
     1a7  add [rax],al
     1a9  add [rax],al
     1ac  add [rax],al
     1ae  add [rcx*1+12100F0Eh],cl
     1b5  adc al,18h
     1b7  or al,0Bh
     1b9  or cl,[rcx]
     1bb  or [rsi],al
     1bd  add al,0

dot_int8_q8_k64_t2:
     1c0  push rcx
     1c1  push rdx
     1c2  mov rax,rsi
     1c5  mov rcx,[rax]
     1c8  mov r8,[rax+8]
     1cc  lea rsi,[rdi+40h]
     1d0  lea r9,[rdi+2000h]
     1d7  vpxord zmm9,zmm9,zmm9
     1dd  vpxord zmm10,zmm10,zmm10
     1e3  xor rdx,rdx
     1e6  imul eax,[rcx+rdx+48h],0FFFFFF80h
     1eb  vpbroadcastd zmm7,eax
     1f1  imul eax,[r8+rdx+48h],0FFFFFF80h
     1f7  vpbroadcastd zmm8,eax
     1fd  prefetcht1 [r9]
     201  prefetcht1 [r9+40h]
     206  prefetcht1 [r9+80h]
     20e  prefetcht1 [r9+0C0h]
     216  prefetcht1 [r9+100h]
     21e  prefetcht1 [r9+140h]
     226  prefetcht1 [r9+180h]
     22e  prefetcht1 [r9+1C0h]
     236  prefetcht1 [r9+200h]
     23e  add r9,220h
     245  vmovdqu64 zmm5,[rsi]
     24b  vpdpbusd zmm7,zmm5,[rcx+rdx*8]{1to16}
     252  vpdpbusd zmm8,zmm5,[r8+rdx*8]{1to16}
     259  vmovdqu64 zmm5,[rsi+40h]
     260  vpdpbusd zmm7,zmm5,[rcx+rdx*8+4]{1to16}
     268  vpdpbusd zmm8,zmm5,[r8+rdx*8+4]{1to16}
     270  vmovdqu64 zmm5,[rsi+80h]
     277  vpdpbusd zmm7,zmm5,[rcx+rdx*8+8]{1to16}
     27f  vpdpbusd zmm8,zmm5,[r8+rdx*8+8]{1to16}
     287  vmovdqu64 zmm5,[rsi+0C0h]
     28e  vpdpbusd zmm7,zmm5,[rcx+rdx*8+0Ch]{1to16}
     296  vpdpbusd zmm8,zmm5,[r8+rdx*8+0Ch]{1to16}
     29e  vmovdqu64 zmm5,[rsi+100h]
     2a5  vpdpbusd zmm7,zmm5,[rcx+rdx*8+10h]{1to16}
     2ad  vpdpbusd zmm8,zmm5,[r8+rdx*8+10h]{1to16}
     2b5  vmovdqu64 zmm5,[rsi+140h]
     2bc  vpdpbusd zmm7,zmm5,[rcx+rdx*8+14h]{1to16}
     2c4  vpdpbusd zmm8,zmm5,[r8+rdx*8+14h]{1to16}
     2cc  vmovdqu64 zmm5,[rsi+180h]
     2d3  vpdpbusd zmm7,zmm5,[rcx+rdx*8+18h]{1to16}
     2db  vpdpbusd zmm8,zmm5,[r8+rdx*8+18h]{1to16}
     2e3  vmovdqu64 zmm5,[rsi+1C0h]
     2ea  vpdpbusd zmm7,zmm5,[rcx+rdx*8+1Ch]{1to16}
     2f2  vpdpbusd zmm8,zmm5,[r8+rdx*8+1Ch]{1to16}
     2fa  vcvtph2ps zmm4,[rdi]
     300  add rdi,20h
     304  vmulps zmm5,zmm4,[rcx+rdx+40h]{1to16}
     30c  vcvtdq2ps zmm7,zmm7
     312  vfmadd231ps zmm9,zmm7,zmm5
     318  vmulps zmm5,zmm4,[r8+rdx+40h]{1to16}
     320  vcvtdq2ps zmm8,zmm8
     326  vfmadd231ps zmm10,zmm8,zmm5
     32c  add rsi,200h
     333  add rdx,4
     337  cmp rdx,8
     33b  jne near 00000000000001E6h
     341  pop rsi
     342  pop rdx
     343  vmovups [rsi],zmm9
     349  add rsi,rdx
     34c  vmovups [rsi],zmm10
     352  vzeroupper
     355  ret

dot_bf16_f32_k64_t1:
     380  mov r8,[rsi]
     383  vpbroadcastd zmm4,[rel 422h]
     38d  vpxord zmm5,zmm5,zmm5
     393  vpxord zmm6,zmm6,zmm6
     399  vpxord zmm7,zmm7,zmm7
     39f  vpxord zmm8,zmm8,zmm8
     3a5  xor r9,r9
     3a8  vmovdqu32 zmm0,[rdi]
     3ae  vpslld zmm0,zmm0,10h
     3b5  vfmadd231ps zmm5,zmm0,[r8+r9]{1to16}
     3bc  vpandd zmm1,zmm4,[rdi]
     3c2  vfmadd231ps zmm6,zmm1,[r8+r9+4]{1to16}
     3ca  vmovdqu32 zmm2,[rdi+40h]
     3d1  vpslld zmm2,zmm2,10h
     3d8  vfmadd231ps zmm7,zmm2,[r8+r9+8]{1to16}
     3e0  vpandd zmm3,zmm4,[rdi+40h]
     3e7  vfmadd231ps zmm8,zmm3,[r8+r9+0Ch]{1to16}
     3ef  add rdi,80h
     3f6  add r9,10h
     3fa  cmp r9,100h
     401  jne short 00000000000003A8h
     403  vaddps zmm5,zmm5,zmm6
     409  vaddps zmm7,zmm7,zmm8
     40f  vaddps zmm5,zmm5,zmm7
     415  vmovups [rdx],zmm5
     41b  add rdx,rcx
     41e  vzeroupper
     421  ret
     422  add [rax],al
     424  (bad)

score_F16_d32_g2_s3e000000:
     440  vpbroadcastd zmm1,[rel 52Fh]
     44a  vpxord zmm2,zmm2,zmm2
     450  vpxord zmm3,zmm3,zmm3
     456  vpxord zmm4,zmm4,zmm4
     45c  vpxord zmm5,zmm5,zmm5
     462  vpxord zmm6,zmm6,zmm6
     468  vpxord zmm7,zmm7,zmm7
     46e  vpxord zmm8,zmm8,zmm8
     474  vpxord zmm9,zmm9,zmm9
     47a  mov rcx,rdi
     47d  xor r8,r8
     480  vcvtph2ps zmm0,[rcx]
     486  vfmadd231ps zmm2,zmm0,[rsi+r8]{1to16}
     48d  vfmadd231ps zmm6,zmm0,[rsi+r8+80h]{1to16}
     495  vcvtph2ps zmm0,[rcx+20h]
     49c  vfmadd231ps zmm3,zmm0,[rsi+r8+4]{1to16}
     4a4  vfmadd231ps zmm7,zmm0,[rsi+r8+84h]{1to16}
     4ac  vcvtph2ps zmm0,[rcx+40h]
     4b3  vfmadd231ps zmm4,zmm0,[rsi+r8+8]{1to16}
     4bb  vfmadd231ps zmm8,zmm0,[rsi+r8+88h]{1to16}
     4c3  vcvtph2ps zmm0,[rcx+60h]
     4ca  vfmadd231ps zmm5,zmm0,[rsi+r8+0Ch]{1to16}
     4d2  vfmadd231ps zmm9,zmm0,[rsi+r8+8Ch]{1to16}
     4da  add rcx,80h
     4e1  add r8,10h
     4e5  cmp r8,80h
     4ec  jne short 0000000000000480h
     4ee  vaddps zmm2,zmm2,zmm3
     4f4  vaddps zmm4,zmm4,zmm5
     4fa  vaddps zmm2,zmm2,zmm4
     500  vmulps zmm2,zmm2,zmm1
     506  vmovups [rdx],zmm2
     50c  vaddps zmm6,zmm6,zmm7
     512  vaddps zmm8,zmm8,zmm9
     518  vaddps zmm6,zmm6,zmm8
     51e  vmulps zmm6,zmm6,zmm1
     524  vmovups [rdx+1000h],zmm6
     52b  vzeroupper
     52e  ret
     52f  add [rax],al
     531  add [rsi],bh

value_F16_d32_g2:
     540  cmp rcx,r8
     543  jge near 00000000000005C9h
     549  imul r9,rcx,40h
     54d  add rdi,r9
     550  vmovups zmm4,[rdx]
     556  vmovups zmm5,[rdx+40h]
     55d  vmovups zmm8,[rdx+80h]
     564  vmovups zmm9,[rdx+0C0h]
     56b  mov r9,rdi
     56e  mov r10,rcx
     571  vcvtph2ps zmm0,[r9]
     577  vcvtph2ps zmm1,[r9+20h]
     57e  vfmadd231ps zmm4,zmm0,[rsi+r10*4]{1to16}
     585  vfmadd231ps zmm5,zmm1,[rsi+r10*4]{1to16}
     58c  vfmadd231ps zmm8,zmm0,[rsi+r10*4+1000h]{1to16}
     597  vfmadd231ps zmm9,zmm1,[rsi+r10*4+1000h]{1to16}
     5a2  add r9,40h
     5a6  inc r10
     5a9  cmp r10,r8
     5ac  jl short 0000000000000571h
     5ae  vmovups [rdx],zmm4
     5b4  vmovups [rdx+40h],zmm5
     5bb  vmovups [rdx+80h],zmm8
     5c2  vmovups [rdx+0C0h],zmm9
     5c9  vzeroupper
     5cc  ret
