dot_mxfp4_q8_k64_t1:
       0  push rbx
       1  push rbp
       2  lea r11,[rel 2B9h]
       9  vmovdqu ymm0,[r11+20h]
       f  lea rbp,[rdi+2000h]
      16  mov rbx,[rsi]
      19  mov r8,rdi
      1c  lea r9,[rdi+40h]
      20  vpxor ymm9,ymm9,ymm9
      25  vpxor ymm10,ymm10,ymm10
      2a  xor r10,r10
      2d  vpbroadcastd ymm7,[rbx+r10+48h]
      34  vpmulld ymm7,ymm7,[r11+0C0h]
      3d  vmovdqa ymm8,ymm7
      41  prefetcht1 [rbp]
      45  prefetcht1 [rbp+40h]
      49  prefetcht1 [rbp+80h]
      50  prefetcht1 [rbp+0C0h]
      57  prefetcht1 [rbp+100h]
      5e  add rbp,110h
      65  vmovdqu ymm1,[r9]
      6a  vpsrlw ymm2,ymm1,4
      6f  vpand ymm1,ymm1,[r11]
      74  vpand ymm2,ymm2,[r11]
      79  vpshufb ymm1,ymm0,ymm1
      7e  vpshufb ymm2,ymm0,ymm2
      83  vmovdqu ymm3,[r9+40h]
      89  vpsrlw ymm4,ymm3,4
      8e  vpand ymm3,ymm3,[r11]
      93  vpand ymm4,ymm4,[r11]
      98  vpshufb ymm3,ymm0,ymm3
      9d  vpshufb ymm4,ymm0,ymm4
      a2  vpbroadcastd ymm5,[rbx+r10*8]
      a8  vpdpbusd ymm7,ymm1,ymm5
      ad  vpbroadcastd ymm6,[rbx+r10*8+4]
      b4  vpdpbusd ymm7,ymm2,ymm6
      b9  vpbroadcastd ymm5,[rbx+r10*8+8]
      c0  vpdpbusd ymm7,ymm3,ymm5
      c5  vpbroadcastd ymm6,[rbx+r10*8+0Ch]
      cc  vpdpbusd ymm7,ymm4,ymm6
      d1  vmovdqu ymm1,[r9+20h]
      d7  vpsrlw ymm2,ymm1,4
      dc  vpand ymm1,ymm1,[r11]
      e1  vpand ymm2,ymm2,[r11]
      e6  vpshufb ymm1,ymm0,ymm1
      eb  vpshufb ymm2,ymm0,ymm2
      f0  vmovdqu ymm3,[r9+60h]
      f6  vpsrlw ymm4,ymm3,4
      fb  vpand ymm3,ymm3,[r11]
     100  vpand ymm4,ymm4,[r11]
     105  vpshufb ymm3,ymm0,ymm3
     10a  vpshufb ymm4,ymm0,ymm4
     10f  vpbroadcastd ymm5,[rbx+r10*8]
     115  vpdpbusd ymm8,ymm1,ymm5
     11a  vpbroadcastd ymm6,[rbx+r10*8+4]
     121  vpdpbusd ymm8,ymm2,ymm6
     126  vpbroadcastd ymm5,[rbx+r10*8+8]
     12d  vpdpbusd ymm8,ymm3,ymm5
     132  vpbroadcastd ymm6,[rbx+r10*8+0Ch]
     139  vpdpbusd ymm8,ymm4,ymm6
     13e  vmovdqu ymm1,[r9+80h]
     147  vpsrlw ymm2,ymm1,4
     14c  vpand ymm1,ymm1,[r11]
     151  vpand ymm2,ymm2,[r11]
     156  vpshufb ymm1,ymm0,ymm1
     15b  vpshufb ymm2,ymm0,ymm2
     160  vmovdqu ymm3,[r9+0C0h]
     169  vpsrlw ymm4,ymm3,4
     16e  vpand ymm3,ymm3,[r11]
     173  vpand ymm4,ymm4,[r11]
     178  vpshufb ymm3,ymm0,ymm3
     17d  vpshufb ymm4,ymm0,ymm4
     182  vpbroadcastd ymm5,[rbx+r10*8+10h]
     189  vpdpbusd ymm7,ymm1,ymm5
     18e  vpbroadcastd ymm6,[rbx+r10*8+14h]
     195  vpdpbusd ymm7,ymm2,ymm6
     19a  vpbroadcastd ymm5,[rbx+r10*8+18h]
     1a1  vpdpbusd ymm7,ymm3,ymm5
     1a6  vpbroadcastd ymm6,[rbx+r10*8+1Ch]
     1ad  vpdpbusd ymm7,ymm4,ymm6
     1b2  vmovdqu ymm1,[r9+0A0h]
     1bb  vpsrlw ymm2,ymm1,4
     1c0  vpand ymm1,ymm1,[r11]
     1c5  vpand ymm2,ymm2,[r11]
     1ca  vpshufb ymm1,ymm0,ymm1
     1cf  vpshufb ymm2,ymm0,ymm2
     1d4  vmovdqu ymm3,[r9+0E0h]
     1dd  vpsrlw ymm4,ymm3,4
     1e2  vpand ymm3,ymm3,[r11]
     1e7  vpand ymm4,ymm4,[r11]
     1ec  vpshufb ymm3,ymm0,ymm3
     1f1  vpshufb ymm4,ymm0,ymm4
     1f6  vpbroadcastd ymm5,[rbx+r10*8+10h]
     1fd  vpdpbusd ymm8,ymm1,ymm5
     202  vpbroadcastd ymm6,[rbx+r10*8+14h]
     209  vpdpbusd ymm8,ymm2,ymm6
     20e  vpbroadcastd ymm5,[rbx+r10*8+18h]
     215  vpdpbusd ymm8,ymm3,ymm5
     21a  vpbroadcastd ymm6,[rbx+r10*8+1Ch]
     221  vpdpbusd ymm8,ymm4,ymm6
     226  vpmovzxbd ymm1,[r8]
     22b  vpslld ymm1,ymm1,17h
     230  vpmaxud ymm1,ymm1,[r11+80h]
     239  vmulps ymm1,ymm1,[r11+0A0h]
     242  vbroadcastss ymm5,[rbx+r10+40h]
     249  vcvtdq2ps ymm7,ymm7
     24d  vmulps ymm7,ymm7,ymm1
     251  vfmadd231ps ymm9,ymm7,ymm5
     256  vpmovzxbd ymm1,[r8+8]
     25c  vpslld ymm1,ymm1,17h
     261  vpmaxud ymm1,ymm1,[r11+80h]
     26a  vmulps ymm1,ymm1,[r11+0A0h]
     273  vbroadcastss ymm5,[rbx+r10+40h]
     27a  vcvtdq2ps ymm8,ymm8
     27f  vmulps ymm8,ymm8,ymm1
     283  vfmadd231ps ymm10,ymm8,ymm5
     288  add r8,10h
     28c  add r9,100h
     293  add r10,4
     297  cmp r10,8
     29b  jne near 000000000000002Dh
     2a1  mov rax,rdx
     2a4  vmovups [rax],ymm9
     2a8  vmovups [rax+20h],ymm10
     2ad  add rax,rcx
     2b0  mov rdx,rax
     2b3  vzeroupper
     2b6  pop rbp
     2b7  pop rbx
     2b8  ret
     2b9  (bad)
     2bd  (bad)
     2c1  (bad)
     2c5  (bad)
     2c9  (bad)
     2cd  (bad)
     2d1  (bad)
     2d5  (bad)
     2d9  or al,0Dh
     2db  (bad)
     2dd  adc [rdx],dl
     2df  adc al,18h
     2e1  or al,0Bh
     2e3  or cl,[rcx]
     2e5  or [rsi],al
     2e7  add al,0
     2e9  or al,0Dh
     2eb  (bad)
     2ed  adc [rdx],dl
     2ef  adc al,18h
     2f1  or al,0Bh
     2f3  or cl,[rcx]
     2f5  or [rsi],al
     2f7  add al,0
     2f9  add [rax],eax
     2fb  add [rax],eax
     2fd  add [rax],eax
     2ff  add [rax],eax
     301  add [rax],eax
     303  add [rax],eax
     305  add [rax],eax
     307  add [rax],eax
     309  add [rax],eax
     30b  add [rax],eax
     30d  add [rax],eax
     30f  add [rax],eax
     311  add [rax],eax
     313  add [rax],eax
     315  add [rax],eax
     317  add [rax],eax
     319  add byte [rax-7F7F7F80h],80h
     320  add byte [rax-7F7F7F80h],80h
     327  add byte [rax-7F7F7F80h],80h
     32e  add byte [rax-7F7F7F80h],80h
     335  add byte [rax+8080h],40h
     33c  add [rax],al
     33e  add [rax],al
     341  add [rax],al
     343  add [rax],al
     346  add [rax],al
     349  add [rax],al
     34b  add [rax],al
     34e  add [rax],al
     351  add [rax],al
     353  add [rax],al
     356  add [rax],al
     359  add [rax],al
     35b  add [rdi],bh
     35d  add [rax],al
     35f  add [rdi],bh
     361  add [rax],al
     363  add [rdi],bh
     365  add [rax],al
     367  add [rdi],bh
     369  add [rax],al
     36b  add [rdi],bh
     36d  add [rax],al
     36f  add [rdi],bh
     371  add [rax],al
     373  add [rdi],bh
     375  add [rax],al
     377  add [rdi],bh
     379  hlt
     37a  (bad)
     37c  push rsp
     37e  (bad)
     380  push rsp
     382  (bad)
     384  push rsp
     386  (bad)
     388  push rsp
     38a  (bad)
     38c  push rsp
     38e  (bad)
     390  push rsp
     392  (bad)
     394  push rsp
     396  (bad)
     398  inc dword [rax]
     39a  add [rax-35h],al
     39d  add [rax],al
     39f  retf
     3a1  add [rax],al
     3a3  retf
     3a5  add [rax],al
     3a7  retf
     3a9  add [rax],al
     3ab  retf
     3ad  add [rax],al
     3af  retf
     3b1  add [rax],al
     3b3  retf
     3b5  add [rax],al
     3b7  retf

dot_int8_q8_k64_t1:
     3c0  push rbx
     3c1  push rbp
     3c2  lea r11,[rel 5DEh]
     3c9  lea rbp,[rdi+2000h]
     3d0  mov rbx,[rsi]
     3d3  mov r8,rdi
     3d6  lea r9,[rdi+40h]
     3da  vpxor ymm6,ymm6,ymm6
     3de  vpxor ymm7,ymm7,ymm7
     3e2  xor r10,r10
     3e5  vpbroadcastd ymm4,[rbx+r10+48h]
     3ec  vpmulld ymm4,ymm4,[r11+0C0h]
     3f5  vmovdqa ymm5,ymm4
     3f9  prefetcht1 [rbp]
     3fd  prefetcht1 [rbp+40h]
     401  prefetcht1 [rbp+80h]
     408  prefetcht1 [rbp+0C0h]
     40f  prefetcht1 [rbp+100h]
     416  prefetcht1 [rbp+140h]
     41d  prefetcht1 [rbp+180h]
     424  prefetcht1 [rbp+1C0h]
     42b  prefetcht1 [rbp+200h]
     432  add rbp,220h
     439  vmovdqu ymm1,[r9]
     43e  vpbroadcastd ymm2,[rbx+r10*8]
     444  vpdpbusd ymm4,ymm1,ymm2
     449  vmovdqu ymm1,[r9+20h]
     44f  vpbroadcastd ymm2,[rbx+r10*8]
     455  vpdpbusd ymm5,ymm1,ymm2
     45a  vmovdqu ymm1,[r9+40h]
     460  vpbroadcastd ymm2,[rbx+r10*8+4]
     467  vpdpbusd ymm4,ymm1,ymm2
     46c  vmovdqu ymm1,[r9+60h]
     472  vpbroadcastd ymm2,[rbx+r10*8+4]
     479  vpdpbusd ymm5,ymm1,ymm2
     47e  vmovdqu ymm1,[r9+80h]
     487  vpbroadcastd ymm2,[rbx+r10*8+8]
     48e  vpdpbusd ymm4,ymm1,ymm2
     493  vmovdqu ymm1,[r9+0A0h]
     49c  vpbroadcastd ymm2,[rbx+r10*8+8]
     4a3  vpdpbusd ymm5,ymm1,ymm2
     4a8  vmovdqu ymm1,[r9+0C0h]
     4b1  vpbroadcastd ymm2,[rbx+r10*8+0Ch]
     4b8  vpdpbusd ymm4,ymm1,ymm2
     4bd  vmovdqu ymm1,[r9+0E0h]
     4c6  vpbroadcastd ymm2,[rbx+r10*8+0Ch]
     4cd  vpdpbusd ymm5,ymm1,ymm2
     4d2  vmovdqu ymm1,[r9+100h]
     4db  vpbroadcastd ymm2,[rbx+r10*8+10h]
     4e2  vpdpbusd ymm4,ymm1,ymm2
     4e7  vmovdqu ymm1,[r9+120h]
     4f0  vpbroadcastd ymm2,[rbx+r10*8+10h]
     4f7  vpdpbusd ymm5,ymm1,ymm2
     4fc  vmovdqu ymm1,[r9+140h]
     505  vpbroadcastd ymm2,[rbx+r10*8+14h]
     50c  vpdpbusd ymm4,ymm1,ymm2
     511  vmovdqu ymm1,[r9+160h]
     51a  vpbroadcastd ymm2,[rbx+r10*8+14h]
     521  vpdpbusd ymm5,ymm1,ymm2
     526  vmovdqu ymm1,[r9+180h]
     52f  vpbroadcastd ymm2,[rbx+r10*8+18h]
     536  vpdpbusd ymm4,ymm1,ymm2
     53b  vmovdqu ymm1,[r9+1A0h]
     544  vpbroadcastd ymm2,[rbx+r10*8+18h]
     54b  vpdpbusd ymm5,ymm1,ymm2
     550  vmovdqu ymm1,[r9+1C0h]
     559  vpbroadcastd ymm2,[rbx+r10*8+1Ch]
     560  vpdpbusd ymm4,ymm1,ymm2
     565  vmovdqu ymm1,[r9+1E0h]
     56e  vpbroadcastd ymm2,[rbx+r10*8+1Ch]
     575  vpdpbusd ymm5,ymm1,ymm2
     57a  vcvtph2ps ymm1,[r8]
     57f  vbroadcastss ymm2,[rbx+r10+40h]
     586  vcvtdq2ps ymm4,ymm4
     58a  vmulps ymm4,ymm4,ymm1
     58e  vfmadd231ps ymm6,ymm4,ymm2
     593  vcvtph2ps ymm1,[r8+10h]
     599  vbroadcastss ymm2,[rbx+r10+40h]
     5a0  vcvtdq2ps ymm5,ymm5
     5a4  vmulps ymm5,ymm5,ymm1
     5a8  vfmadd231ps ymm7,ymm5,ymm2
     5ad  add r8,20h
     5b1  add r9,200h
     5b8  add r10,4
     5bc  cmp r10,8
     5c0  jne near 00000000000003E5h
     5c6  mov rax,rdx
     5c9  vmovups [rax],ymm6
     5cd  vmovups [rax+20h],ymm7
     5d2  add rax,rcx
     5d5  mov rdx,rax
     5d8  vzeroupper
     5db  pop rbp
     5dc  pop rbx
     5dd  ret
     5de  (bad)
     5e2  (bad)
     5e6  (bad)
     5ea  (bad)
     5ee  (bad)
     5f2  (bad)
     5f6  (bad)
     5fa  (bad)
     5fe  or al,0Dh
     600  (bad)
     602  adc [rdx],dl
     604  adc al,18h
     606  or al,0Bh
     608  or cl,[rcx]
     60a  or [rsi],al
     60c  add al,0
     60e  or al,0Dh
     610  (bad)
     612  adc [rdx],dl
     614  adc al,18h
     616  or al,0Bh
     618  or cl,[rcx]
     61a  or [rsi],al
     61c  add al,0
     61e  add [rax],eax
     620  add [rax],eax
     622  add [rax],eax
     624  add [rax],eax
     626  add [rax],eax
     628  add [rax],eax
     62a  add [rax],eax
     62c  add [rax],eax
     62e  add [rax],eax
     630  add [rax],eax
     632  add [rax],eax
     634  add [rax],eax
     636  add [rax],eax
     638  add [rax],eax
     63a  add [rax],eax
     63c  add [rax],eax
     63e  add byte [rax-7F7F7F80h],80h
     645  add byte [rax-7F7F7F80h],80h
     64c  add byte [rax-7F7F7F80h],80h
     653  add byte [rax-7F7F7F80h],80h
     65a  add byte [rax+8080h],40h
     661  add [rax],al
     663  add [rax],al
     666  add [rax],al
     668  add [rax],al
     66b  add [rax],al
     66e  add [rax],al
     670  add [rax],al
     673  add [rax],al
     676  add [rax],al
     678  add [rax],al
     67b  add [rax],al
     67e  add [rax],al
     680  add [rdi],bh
     682  add [rax],al
     684  add [rdi],bh
     686  add [rax],al
     688  add [rdi],bh
     68a  add [rax],al
     68c  add [rdi],bh
     68e  add [rax],al
     690  add [rdi],bh
     692  add [rax],al
     694  add [rdi],bh
     696  add [rax],al
     698  add [rdi],bh
     69a  add [rax],al
     69c  add [rdi],bh
     69e  cmp bh,0FFh
     6a1  inc dword [rax-7F000001h]
     6a7  (bad)
     6a9  inc dword [rax-7F000001h]
     6af  (bad)
     6b1  inc dword [rax-7F000001h]
     6b7  (bad)
     6b9  inc dword [rax+0FFFFFFh]
     6bf  add [rax-35h],al
     6c2  add [rax],al
     6c4  retf
     6c6  add [rax],al
     6c8  retf
     6ca  add [rax],al
     6cc  retf
     6ce  add [rax],al
     6d0  retf
     6d2  add [rax],al
     6d4  retf
     6d6  add [rax],al
     6d8  retf
     6da  add [rax],al
     6dc  retf

gemm_small_q8_1x2:
     700  push rbx
     701  test rcx,rcx
     704  je near 000000000000095Ch
     70a  mov rax,rdx
     70d  vmovups ymm9,[rax]
     711  vmovups ymm10,[rax+20h]
     716  add rax,r8
     719  vmovups ymm11,[rax]
     71d  vmovups ymm12,[rax+20h]
     722  add rax,r8
     725  lea r10,[rdi]
     728  mov r11,rsi
     72b  mov rbx,rcx
     72e  vpbroadcastd ymm3,[r11+0D8h]
     737  vpbroadcastd ymm4,[r11+0D8h]
     740  vpbroadcastd ymm5,[r11+0DCh]
     749  vpbroadcastd ymm6,[r11+0DCh]
     752  vmovdqu ymm0,[r10+80h]
     75b  vmovdqu ymm1,[r10+0A0h]
     764  vpbroadcastd ymm2,[r11]
     769  vpdpbusd ymm3,ymm0,ymm2
     76e  vpdpbusd ymm4,ymm1,ymm2
     773  vpbroadcastd ymm2,[r11+20h]
     779  vpdpbusd ymm5,ymm0,ymm2
     77e  vpdpbusd ymm6,ymm1,ymm2
     783  vmovdqu ymm0,[r10+0C0h]
     78c  vmovdqu ymm1,[r10+0E0h]
     795  vpbroadcastd ymm2,[r11+4]
     79b  vpdpbusd ymm3,ymm0,ymm2
     7a0  vpdpbusd ymm4,ymm1,ymm2
     7a5  vpbroadcastd ymm2,[r11+24h]
     7ab  vpdpbusd ymm5,ymm0,ymm2
     7b0  vpdpbusd ymm6,ymm1,ymm2
     7b5  vmovdqu ymm0,[r10+100h]
     7be  vmovdqu ymm1,[r10+120h]
     7c7  vpbroadcastd ymm2,[r11+8]
     7cd  vpdpbusd ymm3,ymm0,ymm2
     7d2  vpdpbusd ymm4,ymm1,ymm2
     7d7  vpbroadcastd ymm2,[r11+28h]
     7dd  vpdpbusd ymm5,ymm0,ymm2
     7e2  vpdpbusd ymm6,ymm1,ymm2
     7e7  vmovdqu ymm0,[r10+140h]
     7f0  vmovdqu ymm1,[r10+160h]
     7f9  vpbroadcastd ymm2,[r11+0Ch]
     7ff  vpdpbusd ymm3,ymm0,ymm2
     804  vpdpbusd ymm4,ymm1,ymm2
     809  vpbroadcastd ymm2,[r11+2Ch]
     80f  vpdpbusd ymm5,ymm0,ymm2
     814  vpdpbusd ymm6,ymm1,ymm2
     819  vmovdqu ymm0,[r10+180h]
     822  vmovdqu ymm1,[r10+1A0h]
     82b  vpbroadcastd ymm2,[r11+10h]
     831  vpdpbusd ymm3,ymm0,ymm2
     836  vpdpbusd ymm4,ymm1,ymm2
     83b  vpbroadcastd ymm2,[r11+30h]
     841  vpdpbusd ymm5,ymm0,ymm2
     846  vpdpbusd ymm6,ymm1,ymm2
     84b  vmovdqu ymm0,[r10+1C0h]
     854  vmovdqu ymm1,[r10+1E0h]
     85d  vpbroadcastd ymm2,[r11+14h]
     863  vpdpbusd ymm3,ymm0,ymm2
     868  vpdpbusd ymm4,ymm1,ymm2
     86d  vpbroadcastd ymm2,[r11+34h]
     873  vpdpbusd ymm5,ymm0,ymm2
     878  vpdpbusd ymm6,ymm1,ymm2
     87d  vmovdqu ymm0,[r10+200h]
     886  vmovdqu ymm1,[r10+220h]
     88f  vpbroadcastd ymm2,[r11+18h]
     895  vpdpbusd ymm3,ymm0,ymm2
     89a  vpdpbusd ymm4,ymm1,ymm2
     89f  vpbroadcastd ymm2,[r11+38h]
     8a5  vpdpbusd ymm5,ymm0,ymm2
     8aa  vpdpbusd ymm6,ymm1,ymm2
     8af  vmovdqu ymm0,[r10+240h]
     8b8  vmovdqu ymm1,[r10+260h]
     8c1  vpbroadcastd ymm2,[r11+1Ch]
     8c7  vpdpbusd ymm3,ymm0,ymm2
     8cc  vpdpbusd ymm4,ymm1,ymm2
     8d1  vpbroadcastd ymm2,[r11+3Ch]
     8d7  vpdpbusd ymm5,ymm0,ymm2
     8dc  vpdpbusd ymm6,ymm1,ymm2
     8e1  vmovups ymm0,[r10]
     8e6  vmovups ymm1,[r10+20h]
     8ec  vbroadcastss ymm2,[r11+0C0h]
     8f5  vfmadd213ps ymm3,ymm0,[r10+40h]
     8fb  vfmadd231ps ymm9,ymm3,ymm2
     900  vfmadd213ps ymm4,ymm1,[r10+60h]
     906  vfmadd231ps ymm10,ymm4,ymm2
     90b  vbroadcastss ymm2,[r11+0C4h]
     914  vfmadd213ps ymm5,ymm0,[r10+40h]
     91a  vfmadd231ps ymm11,ymm5,ymm2
     91f  vfmadd213ps ymm6,ymm1,[r10+60h]
     925  vfmadd231ps ymm12,ymm6,ymm2
     92a  add r10,280h
     931  add r11,100h
     938  dec rbx
     93b  jne near 000000000000072Eh
     941  mov rax,rdx
     944  vmovups [rax],ymm9
     948  vmovups [rax+20h],ymm10
     94d  add rax,r8
     950  vmovups [rax],ymm11
     954  vmovups [rax+20h],ymm12
     959  add rax,r8
     95c  vzeroupper
     95f  pop rbx
     960  ret
