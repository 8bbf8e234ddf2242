dot_mxfp4_q8_k64_t1:
       0  push rbx
       1  push rbp
       2  lea r11,[rel 311h]
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
      a8  vpmaddubsw ymm5,ymm1,ymm5
      ad  vpbroadcastd ymm6,[rbx+r10*8+4]
      b4  vpmaddubsw ymm6,ymm2,ymm6
      b9  vpaddw ymm5,ymm5,ymm6
      bd  vpbroadcastd ymm6,[rbx+r10*8+8]
      c4  vpmaddubsw ymm6,ymm3,ymm6
      c9  vpaddw ymm5,ymm5,ymm6
      cd  vpbroadcastd ymm6,[rbx+r10*8+0Ch]
      d4  vpmaddubsw ymm6,ymm4,ymm6
      d9  vpaddw ymm5,ymm5,ymm6
      dd  vpmaddwd ymm5,ymm5,[r11+40h]
      e3  vpaddd ymm7,ymm7,ymm5
      e7  vmovdqu ymm1,[r9+20h]
      ed  vpsrlw ymm2,ymm1,4
      f2  vpand ymm1,ymm1,[r11]
      f7  vpand ymm2,ymm2,[r11]
      fc  vpshufb ymm1,ymm0,ymm1
     101  vpshufb ymm2,ymm0,ymm2
     106  vmovdqu ymm3,[r9+60h]
     10c  vpsrlw ymm4,ymm3,4
     111  vpand ymm3,ymm3,[r11]
     116  vpand ymm4,ymm4,[r11]
     11b  vpshufb ymm3,ymm0,ymm3
     120  vpshufb ymm4,ymm0,ymm4
     125  vpbroadcastd ymm5,[rbx+r10*8]
     12b  vpmaddubsw ymm5,ymm1,ymm5
     130  vpbroadcastd ymm6,[rbx+r10*8+4]
     137  vpmaddubsw ymm6,ymm2,ymm6
     13c  vpaddw ymm5,ymm5,ymm6
     140  vpbroadcastd ymm6,[rbx+r10*8+8]
     147  vpmaddubsw ymm6,ymm3,ymm6
     14c  vpaddw ymm5,ymm5,ymm6
     150  vpbroadcastd ymm6,[rbx+r10*8+0Ch]
     157  vpmaddubsw ymm6,ymm4,ymm6
     15c  vpaddw ymm5,ymm5,ymm6
     160  vpmaddwd ymm5,ymm5,[r11+40h]
     166  vpaddd ymm8,ymm8,ymm5
     16a  vmovdqu ymm1,[r9+80h]
     173  vpsrlw ymm2,ymm1,4
     178  vpand ymm1,ymm1,[r11]
     17d  vpand ymm2,ymm2,[r11]
     182  vpshufb ymm1,ymm0,ymm1
     187  vpshufb ymm2,ymm0,ymm2
     18c  vmovdqu ymm3,[r9+0C0h]
     195  vpsrlw ymm4,ymm3,4
     19a  vpand ymm3,ymm3,[r11]
     19f  vpand ymm4,ymm4,[r11]
     1a4  vpshufb ymm3,ymm0,ymm3
     1a9  vpshufb ymm4,ymm0,ymm4
     1ae  vpbroadcastd ymm5,[rbx+r10*8+10h]
     1b5  vpmaddubsw ymm5,ymm1,ymm5
     1ba  vpbroadcastd ymm6,[rbx+r10*8+14h]
     1c1  vpmaddubsw ymm6,ymm2,ymm6
     1c6  vpaddw ymm5,ymm5,ymm6
     1ca  vpbroadcastd ymm6,[rbx+r10*8+18h]
     1d1  vpmaddubsw ymm6,ymm3,ymm6
     1d6  vpaddw ymm5,ymm5,ymm6
     1da  vpbroadcastd ymm6,[rbx+r10*8+1Ch]
     1e1  vpmaddubsw ymm6,ymm4,ymm6
     1e6  vpaddw ymm5,ymm5,ymm6
     1ea  vpmaddwd ymm5,ymm5,[r11+40h]
     1f0  vpaddd ymm7,ymm7,ymm5
     1f4  vmovdqu ymm1,[r9+0A0h]
     1fd  vpsrlw ymm2,ymm1,4
     202  vpand ymm1,ymm1,[r11]
     207  vpand ymm2,ymm2,[r11]
     20c  vpshufb ymm1,ymm0,ymm1
     211  vpshufb ymm2,ymm0,ymm2
     216  vmovdqu ymm3,[r9+0E0h]
     21f  vpsrlw ymm4,ymm3,4
     224  vpand ymm3,ymm3,[r11]
     229  vpand ymm4,ymm4,[r11]
     22e  vpshufb ymm3,ymm0,ymm3
     233  vpshufb ymm4,ymm0,ymm4
     238  vpbroadcastd ymm5,[rbx+r10*8+10h]
     23f  vpmaddubsw ymm5,ymm1,ymm5
     244  vpbroadcastd ymm6,[rbx+r10*8+14h]
     24b  vpmaddubsw ymm6,ymm2,ymm6
     250  vpaddw ymm5,ymm5,ymm6
     254  vpbroadcastd ymm6,[rbx+r10*8+18h]
     25b  vpmaddubsw ymm6,ymm3,ymm6
     260  vpaddw ymm5,ymm5,ymm6
     264  vpbroadcastd ymm6,[rbx+r10*8+1Ch]
     26b  vpmaddubsw ymm6,ymm4,ymm6
     270  vpaddw ymm5,ymm5,ymm6
     274  vpmaddwd ymm5,ymm5,[r11+40h]
     27a  vpaddd ymm8,ymm8,ymm5
     27e  vpmovzxbd ymm1,[r8]
     283  vpslld ymm1,ymm1,17h
     288  vpmaxud ymm1,ymm1,[r11+80h]
     291  vmulps ymm1,ymm1,[r11+0A0h]
     29a  vbroadcastss ymm5,[rbx+r10+40h]
     2a1  vcvtdq2ps ymm7,ymm7
     2a5  vmulps ymm7,ymm7,ymm1
     2a9  vfmadd231ps ymm9,ymm7,ymm5
     2ae  vpmovzxbd ymm1,[r8+8]
     2b4  vpslld ymm1,ymm1,17h
     2b9  vpmaxud ymm1,ymm1,[r11+80h]
     2c2  vmulps ymm1,ymm1,[r11+0A0h]
     2cb  vbroadcastss ymm5,[rbx+r10+40h]
     2d2  vcvtdq2ps ymm8,ymm8
     2d7  vmulps ymm8,ymm8,ymm1
     2db  vfmadd231ps ymm10,ymm8,ymm5
     2e0  add r8,10h
     2e4  add r9,100h
     2eb  add r10,4
     2ef  cmp r10,8
     2f3  jne near 000000000000002Dh
     2f9  mov rax,rdx
     2fc  vmovups [rax],ymm9
     300  vmovups [rax+20h],ymm10
     305  add rax,rcx
     308  mov rdx,rax
     30b  vzeroupper
     30e  pop rbp
     30f  pop rbx
     310  ret
     311  (bad)
     315  (bad)
     319  (bad)
     31d  (bad)
     321  (bad)
     325  (bad)
     329  (bad)
     32d  (bad)
     331  or al,0Dh
     333  (bad)
     335  adc [rdx],dl
     337  adc al,18h
     339  or al,0Bh
     33b  or cl,[rcx]
     33d  or [rsi],al
     33f  add al,0
     341  or al,0Dh
     343  (bad)
     345  adc [rdx],dl
     347  adc al,18h
     349  or al,0Bh
     34b  or cl,[rcx]
     34d  or [rsi],al
     34f  add al,0
     351  add [rax],eax
     353  add [rax],eax
     355  add [rax],eax
     357  add [rax],eax
     359  add [rax],eax
     35b  add [rax],eax
     35d  add [rax],eax
     35f  add [rax],eax
     361  add [rax],eax
     363  add [rax],eax
     365  add [rax],eax
     367  add [rax],eax
     369  add [rax],eax
     36b  add [rax],eax
     36d  add [rax],eax
     36f  add [rax],eax
     371  add byte [rax-7F7F7F80h],80h
     378  add byte [rax-7F7F7F80h],80h
     37f  add byte [rax-7F7F7F80h],80h
     386  add byte [rax-7F7F7F80h],80h
     38d  add byte [rax+8080h],40h
     394  add [rax],al
     396  add [rax],al
     399  add [rax],al
     39b  add [rax],al
     39e  add [rax],al
     3a1  add [rax],al
     3a3  add [rax],al
     3a6  add [rax],al
     3a9  add [rax],al
     3ab  add [rax],al
     3ae  add [rax],al
     3b1  add [rax],al
     3b3  add [rdi],bh
     3b5  add [rax],al
     3b7  add [rdi],bh
     3b9  add [rax],al
     3bb  add [rdi],bh
     3bd  add [rax],al
     3bf  add [rdi],bh
     3c1  add [rax],al
     3c3  add [rdi],bh
     3c5  add [rax],al
     3c7  add [rdi],bh
     3c9  add [rax],al
     3cb  add [rdi],bh
     3cd  add [rax],al
     3cf  add [rdi],bh
     3d1  hlt
     3d2  (bad)
     3d4  push rsp
     3d6  (bad)
     3d8  push rsp
     3da  (bad)
     3dc  push rsp
     3de  (bad)
     3e0  push rsp
     3e2  (bad)
     3e4  push rsp
     3e6  (bad)
     3e8  push rsp
     3ea  (bad)
     3ec  push rsp
     3ee  (bad)
     3f0  inc dword [rax]
     3f2  add [rax-35h],al
     3f5  add [rax],al
     3f7  retf
     3f9  add [rax],al
     3fb  retf
     3fd  add [rax],al
     3ff  retf
     401  add [rax],al
     403  retf
     405  add [rax],al
     407  retf
     409  add [rax],al
     40b  retf
     40d  add [rax],al
     40f  retf

dot_int8_q8_k64_t1:
     440  push rbx
     441  push rbp
     442  lea r11,[rel 7F2h]
     449  lea rbp,[rdi+2000h]
     450  mov rbx,[rsi]
     453  mov r8,rdi
     456  lea r9,[rdi+40h]
     45a  vpxor ymm6,ymm6,ymm6
     45e  vpxor ymm7,ymm7,ymm7
     462  xor r10,r10
     465  vpxor ymm4,ymm4,ymm4
     469  vpxor ymm5,ymm5,ymm5
     46d  prefetcht1 [rbp]
     471  prefetcht1 [rbp+40h]
     475  prefetcht1 [rbp+80h]
     47c  prefetcht1 [rbp+0C0h]
     483  prefetcht1 [rbp+100h]
     48a  prefetcht1 [rbp+140h]
     491  prefetcht1 [rbp+180h]
     498  prefetcht1 [rbp+1C0h]
     49f  prefetcht1 [rbp+200h]
     4a6  add rbp,220h
     4ad  vmovdqu ymm1,[r9]
     4b2  vpxor ymm1,ymm1,[r11+60h]
     4b8  vpbroadcastd ymm2,[rbx+r10*8]
     4be  vpsignb ymm3,ymm1,ymm2
     4c3  vpabsb ymm2,ymm2
     4c8  vpmaddubsw ymm2,ymm2,ymm3
     4cd  vpmaddwd ymm2,ymm2,[r11+40h]
     4d3  vpaddd ymm4,ymm4,ymm2
     4d7  vmovdqu ymm1,[r9+20h]
     4dd  vpxor ymm1,ymm1,[r11+60h]
     4e3  vpbroadcastd ymm2,[rbx+r10*8]
     4e9  vpsignb ymm3,ymm1,ymm2
     4ee  vpabsb ymm2,ymm2
     4f3  vpmaddubsw ymm2,ymm2,ymm3
     4f8  vpmaddwd ymm2,ymm2,[r11+40h]
     4fe  vpaddd ymm5,ymm5,ymm2
     502  vmovdqu ymm1,[r9+40h]
     508  vpxor ymm1,ymm1,[r11+60h]
     50e  vpbroadcastd ymm2,[rbx+r10*8+4]
     515  vpsignb ymm3,ymm1,ymm2
     51a  vpabsb ymm2,ymm2
     51f  vpmaddubsw ymm2,ymm2,ymm3
     524  vpmaddwd ymm2,ymm2,[r11+40h]
     52a  vpaddd ymm4,ymm4,ymm2
     52e  vmovdqu ymm1,[r9+60h]
     534  vpxor ymm1,ymm1,[r11+60h]
     53a  vpbroadcastd ymm2,[rbx+r10*8+4]
     541  vpsignb ymm3,ymm1,ymm2
     546  vpabsb ymm2,ymm2
     54b  vpmaddubsw ymm2,ymm2,ymm3
     550  vpmaddwd ymm2,ymm2,[r11+40h]
     556  vpaddd ymm5,ymm5,ymm2
     55a  vmovdqu ymm1,[r9+80h]
     563  vpxor ymm1,ymm1,[r11+60h]
     569  vpbroadcastd ymm2,[rbx+r10*8+8]
     570  vpsignb ymm3,ymm1,ymm2
     575  vpabsb ymm2,ymm2
     57a  vpmaddubsw ymm2,ymm2,ymm3
     57f  vpmaddwd ymm2,ymm2,[r11+40h]
     585  vpaddd ymm4,ymm4,ymm2
     589  vmovdqu ymm1,[r9+0A0h]
     592  vpxor ymm1,ymm1,[r11+60h]
     598  vpbroadcastd ymm2,[rbx+r10*8+8]
     59f  vpsignb ymm3,ymm1,ymm2
     5a4  vpabsb ymm2,ymm2
     5a9  vpmaddubsw ymm2,ymm2,ymm3
     5ae  vpmaddwd ymm2,ymm2,[r11+40h]
     5b4  vpaddd ymm5,ymm5,ymm2
     5b8  vmovdqu ymm1,[r9+0C0h]
     5c1  vpxor ymm1,ymm1,[r11+60h]
     5c7  vpbroadcastd ymm2,[rbx+r10*8+0Ch]
     5ce  vpsignb ymm3,ymm1,ymm2
     5d3  vpabsb ymm2,ymm2
     5d8  vpmaddubsw ymm2,ymm2,ymm3
     5dd  vpmaddwd ymm2,ymm2,[r11+40h]
     5e3  vpaddd ymm4,ymm4,ymm2
     5e7  vmovdqu ymm1,[r9+0E0h]
     5f0  vpxor ymm1,ymm1,[r11+60h]
     5f6  vpbroadcastd ymm2,[rbx+r10*8+0Ch]
     5fd  vpsignb ymm3,ymm1,ymm2
     602  vpabsb ymm2,ymm2
     607  vpmaddubsw ymm2,ymm2,ymm3
     60c  vpmaddwd ymm2,ymm2,[r11+40h]
     612  vpaddd ymm5,ymm5,ymm2
     616  vmovdqu ymm1,[r9+100h]
     61f  vpxor ymm1,ymm1,[r11+60h]
     625  vpbroadcastd ymm2,[rbx+r10*8+10h]
     62c  vpsignb ymm3,ymm1,ymm2
     631  vpabsb ymm2,ymm2
     636  vpmaddubsw ymm2,ymm2,ymm3
     63b  vpmaddwd ymm2,ymm2,[r11+40h]
     641  vpaddd ymm4,ymm4,ymm2
     645  vmovdqu ymm1,[r9+120h]
     64e  vpxor ymm1,ymm1,[r11+60h]
     654  vpbroadcastd ymm2,[rbx+r10*8+10h]
     65b  vpsignb ymm3,ymm1,ymm2
     660  vpabsb ymm2,ymm2
     665  vpmaddubsw ymm2,ymm2,ymm3
     66a  vpmaddwd ymm2,ymm2,[r11+40h]
     670  vpaddd ymm5,ymm5,ymm2
     674  vmovdqu ymm1,[r9+140h]
     67d  vpxor ymm1,ymm1,[r11+60h]
     683  vpbroadcastd ymm2,[rbx+r10*8+14h]
     68a  vpsignb ymm3,ymm1,ymm2
     68f  vpabsb ymm2,ymm2
     694  vpmaddubsw ymm2,ymm2,ymm3
     699  vpmaddwd ymm2,ymm2,[r11+40h]
     69f  vpaddd ymm4,ymm4,ymm2
     6a3  vmovdqu ymm1,[r9+160h]
     6ac  vpxor ymm1,ymm1,[r11+60h]
     6b2  vpbroadcastd ymm2,[rbx+r10*8+14h]
     6b9  vpsignb ymm3,ymm1,ymm2
     6be  vpabsb ymm2,ymm2
     6c3  vpmaddubsw ymm2,ymm2,ymm3
     6c8  vpmaddwd ymm2,ymm2,[r11+40h]
     6ce  vpaddd ymm5,ymm5,ymm2
     6d2  vmovdqu ymm1,[r9+180h]
     6db  vpxor ymm1,ymm1,[r11+60h]
     6e1  vpbroadcastd ymm2,[rbx+r10*8+18h]
     6e8  vpsignb ymm3,ymm1,ymm2
     6ed  vpabsb ymm2,ymm2
     6f2  vpmaddubsw ymm2,ymm2,ymm3
     6f7  vpmaddwd ymm2,ymm2,[r11+40h]
     6fd  vpaddd ymm4,ymm4,ymm2
     701  vmovdqu ymm1,[r9+1A0h]
     70a  vpxor ymm1,ymm1,[r11+60h]
     710  vpbroadcastd ymm2,[rbx+r10*8+18h]
     717  vpsignb ymm3,ymm1,ymm2
     71c  vpabsb ymm2,ymm2
     721  vpmaddubsw ymm2,ymm2,ymm3
     726  vpmaddwd ymm2,ymm2,[r11+40h]
     72c  vpaddd ymm5,ymm5,ymm2
     730  vmovdqu ymm1,[r9+1C0h]
     739  vpxor ymm1,ymm1,[r11+60h]
     73f  vpbroadcastd ymm2,[rbx+r10*8+1Ch]
     746  vpsignb ymm3,ymm1,ymm2
     74b  vpabsb ymm2,ymm2
     750  vpmaddubsw ymm2,ymm2,ymm3
     755  vpmaddwd ymm2,ymm2,[r11+40h]
     75b  vpaddd ymm4,ymm4,ymm2
     75f  vmovdqu ymm1,[r9+1E0h]
     768  vpxor ymm1,ymm1,[r11+60h]
     76e  vpbroadcastd ymm2,[rbx+r10*8+1Ch]
     775  vpsignb ymm3,ymm1,ymm2
     77a  vpabsb ymm2,ymm2
     77f  vpmaddubsw ymm2,ymm2,ymm3
     784  vpmaddwd ymm2,ymm2,[r11+40h]
     78a  vpaddd ymm5,ymm5,ymm2
     78e  vcvtph2ps ymm1,[r8]
     793  vbroadcastss ymm2,[rbx+r10+40h]
     79a  vcvtdq2ps ymm4,ymm4
     79e  vmulps ymm4,ymm4,ymm1
     7a2  vfmadd231ps ymm6,ymm4,ymm2
     7a7  vcvtph2ps ymm1,[r8+10h]
     7ad  vbroadcastss ymm2,[rbx+r10+40h]
     7b4  vcvtdq2ps ymm5,ymm5
     7b8  vmulps ymm5,ymm5,ymm1
     7bc  vfmadd231ps ymm7,ymm5,ymm2
     7c1  add r8,20h
     7c5  add r9,200h
     7cc  add r10,4
     7d0  cmp r10,8
     7d4  jne near 0000000000000465h
     7da  mov rax,rdx
     7dd  vmovups [rax],ymm6
     7e1  vmovups [rax+20h],ymm7
     7e6  add rax,rcx
     7e9  mov rdx,rax
     7ec  vzeroupper
     7ef  pop rbp
     7f0  pop rbx
     7f1  ret
     7f2  (bad)
     7f6  (bad)
     7fa  (bad)
     7fe  (bad)
     802  (bad)
     806  (bad)
     80a  (bad)
     80e  (bad)
     812  or al,0Dh
     814  (bad)
     816  adc [rdx],dl
     818  adc al,18h
     81a  or al,0Bh
     81c  or cl,[rcx]
     81e  or [rsi],al
     820  add al,0
     822  or al,0Dh
     824  (bad)
     826  adc [rdx],dl
     828  adc al,18h
     82a  or al,0Bh
     82c  or cl,[rcx]
     82e  or [rsi],al
     830  add al,0
     832  add [rax],eax
     834  add [rax],eax
     836  add [rax],eax
     838  add [rax],eax
     83a  add [rax],eax
     83c  add [rax],eax
     83e  add [rax],eax
     840  add [rax],eax
     842  add [rax],eax
     844  add [rax],eax
     846  add [rax],eax
     848  add [rax],eax
     84a  add [rax],eax
     84c  add [rax],eax
     84e  add [rax],eax
     850  add [rax],eax
     852  add byte [rax-7F7F7F80h],80h
     859  add byte [rax-7F7F7F80h],80h
     860  add byte [rax-7F7F7F80h],80h
     867  add byte [rax-7F7F7F80h],80h
     86e  add byte [rax+8080h],40h
     875  add [rax],al
     877  add [rax],al
     87a  add [rax],al
     87c  add [rax],al
     87f  add [rax],al
     882  add [rax],al
     884  add [rax],al
     887  add [rax],al
     88a  add [rax],al
     88c  add [rax],al
     88f  add [rax],al
     892  add [rax],al
     894  add [rdi],bh
     896  add [rax],al
     898  add [rdi],bh
     89a  add [rax],al
     89c  add [rdi],bh
     89e  add [rax],al
     8a0  add [rdi],bh
     8a2  add [rax],al
     8a4  add [rdi],bh
     8a6  add [rax],al
     8a8  add [rdi],bh
     8aa  add [rax],al
     8ac  add [rdi],bh
     8ae  add [rax],al
     8b0  add [rdi],bh
     8b2  cmp bh,0FFh
     8b5  inc dword [rax-7F000001h]
     8bb  (bad)
     8bd  inc dword [rax-7F000001h]
     8c3  (bad)
     8c5  inc dword [rax-7F000001h]
     8cb  (bad)
     8cd  inc dword [rax+0FFFFFFh]
     8d3  add [rax-35h],al
     8d6  add [rax],al
     8d8  retf
     8da  add [rax],al
     8dc  retf
     8de  add [rax],al
     8e0  retf
     8e2  add [rax],al
     8e4  retf
     8e6  add [rax],al
     8e8  retf
     8ea  add [rax],al
     8ec  retf
     8ee  add [rax],al
     8f0  retf

gemm_small_q8_1x2:
     900  push rbx
     901  push rbp
     902  push r12
     904  test rcx,rcx
     907  je near 0000000000000BFDh
     90d  lea rax,[rel 0C05h]
     914  lea rbp,[rdx]
     917  lea r10,[rdi]
     91a  mov r11,rsi
     91d  mov rbx,rcx
     920  vmovups ymm12,[rbp]
     925  vmovups ymm13,[rbp+20h]
     92a  vmovups ymm14,[rbp+r8]
     931  vmovups ymm15,[rbp+r8+20h]
     938  vmovdqu ymm0,[r10+80h]
     941  vmovdqu ymm1,[r10+0A0h]
     94a  vpbroadcastd ymm2,[r11]
     94f  vpmaddubsw ymm4,ymm0,ymm2
     954  vpmaddubsw ymm5,ymm1,ymm2
     959  vpbroadcastd ymm2,[r11+20h]
     95f  vpmaddubsw ymm6,ymm0,ymm2
     964  vpmaddubsw ymm7,ymm1,ymm2
     969  vmovdqu ymm0,[r10+0C0h]
     972  vmovdqu ymm1,[r10+0E0h]
     97b  vpbroadcastd ymm2,[r11+4]
     981  vpmaddubsw ymm3,ymm0,ymm2
     986  vpmaddubsw ymm2,ymm1,ymm2
     98b  vpaddw ymm4,ymm4,ymm3
     98f  vpaddw ymm5,ymm5,ymm2
     993  vpbroadcastd ymm2,[r11+24h]
     999  vpmaddubsw ymm3,ymm0,ymm2
     99e  vpmaddubsw ymm2,ymm1,ymm2
     9a3  vpaddw ymm6,ymm6,ymm3
     9a7  vpaddw ymm7,ymm7,ymm2
     9ab  vmovdqu ymm0,[r10+100h]
     9b4  vmovdqu ymm1,[r10+120h]
     9bd  vpbroadcastd ymm2,[r11+8]
     9c3  vpmaddubsw ymm3,ymm0,ymm2
     9c8  vpmaddubsw ymm2,ymm1,ymm2
     9cd  vpaddw ymm4,ymm4,ymm3
     9d1  vpaddw ymm5,ymm5,ymm2
     9d5  vpbroadcastd ymm2,[r11+28h]
     9db  vpmaddubsw ymm3,ymm0,ymm2
     9e0  vpmaddubsw ymm2,ymm1,ymm2
     9e5  vpaddw ymm6,ymm6,ymm3
     9e9  vpaddw ymm7,ymm7,ymm2
     9ed  vmovdqu ymm0,[r10+140h]
     9f6  vmovdqu ymm1,[r10+160h]
     9ff  vpbroadcastd ymm2,[r11+0Ch]
     a05  vpmaddubsw ymm3,ymm0,ymm2
     a0a  vpmaddubsw ymm2,ymm1,ymm2
     a0f  vpaddw ymm4,ymm4,ymm3
     a13  vpaddw ymm5,ymm5,ymm2
     a17  vpbroadcastd ymm2,[r11+2Ch]
     a1d  vpmaddubsw ymm3,ymm0,ymm2
     a22  vpmaddubsw ymm2,ymm1,ymm2
     a27  vpaddw ymm6,ymm6,ymm3
     a2b  vpaddw ymm7,ymm7,ymm2
     a2f  vpbroadcastd ymm2,[rax+4]
     a35  vpmaddwd ymm8,ymm4,ymm2
     a39  vpmaddwd ymm9,ymm5,ymm2
     a3d  vpmaddwd ymm10,ymm6,ymm2
     a41  vpmaddwd ymm11,ymm7,ymm2
     a45  vmovdqu ymm0,[r10+180h]
     a4e  vmovdqu ymm1,[r10+1A0h]
     a57  vpbroadcastd ymm2,[r11+10h]
     a5d  vpmaddubsw ymm4,ymm0,ymm2
     a62  vpmaddubsw ymm5,ymm1,ymm2
     a67  vpbroadcastd ymm2,[r11+30h]
     a6d  vpmaddubsw ymm6,ymm0,ymm2
     a72  vpmaddubsw ymm7,ymm1,ymm2
     a77  vmovdqu ymm0,[r10+1C0h]
     a80  vmovdqu ymm1,[r10+1E0h]
     a89  vpbroadcastd ymm2,[r11+14h]
     a8f  vpmaddubsw ymm3,ymm0,ymm2
     a94  vpmaddubsw ymm2,ymm1,ymm2
     a99  vpaddw ymm4,ymm4,ymm3
     a9d  vpaddw ymm5,ymm5,ymm2
     aa1  vpbroadcastd ymm2,[r11+34h]
     aa7  vpmaddubsw ymm3,ymm0,ymm2
     aac  vpmaddubsw ymm2,ymm1,ymm2
     ab1  vpaddw ymm6,ymm6,ymm3
     ab5  vpaddw ymm7,ymm7,ymm2
     ab9  vmovdqu ymm0,[r10+200h]
     ac2  vmovdqu ymm1,[r10+220h]
     acb  vpbroadcastd ymm2,[r11+18h]
     ad1  vpmaddubsw ymm3,ymm0,ymm2
     ad6  vpmaddubsw ymm2,ymm1,ymm2
     adb  vpaddw ymm4,ymm4,ymm3
     adf  vpaddw ymm5,ymm5,ymm2
     ae3  vpbroadcastd ymm2,[r11+38h]
     ae9  vpmaddubsw ymm3,ymm0,ymm2
     aee  vpmaddubsw ymm2,ymm1,ymm2
     af3  vpaddw ymm6,ymm6,ymm3
     af7  vpaddw ymm7,ymm7,ymm2
     afb  vmovdqu ymm0,[r10+240h]
     b04  vmovdqu ymm1,[r10+260h]
     b0d  vpbroadcastd ymm2,[r11+1Ch]
     b13  vpmaddubsw ymm3,ymm0,ymm2
     b18  vpmaddubsw ymm2,ymm1,ymm2
     b1d  vpaddw ymm4,ymm4,ymm3
     b21  vpaddw ymm5,ymm5,ymm2
     b25  vpbroadcastd ymm2,[r11+3Ch]
     b2b  vpmaddubsw ymm3,ymm0,ymm2
     b30  vpmaddubsw ymm2,ymm1,ymm2
     b35  vpaddw ymm6,ymm6,ymm3
     b39  vpaddw ymm7,ymm7,ymm2
     b3d  vpbroadcastd ymm2,[rax+4]
     b43  vpmaddwd ymm4,ymm4,ymm2
     b47  vpaddd ymm8,ymm8,ymm4
     b4b  vpmaddwd ymm5,ymm5,ymm2
     b4f  vpaddd ymm9,ymm9,ymm5
     b53  vpmaddwd ymm6,ymm6,ymm2
     b57  vpaddd ymm10,ymm10,ymm6
     b5b  vpmaddwd ymm7,ymm7,ymm2
     b5f  vpaddd ymm11,ymm11,ymm7
     b63  vmovups ymm0,[r10]
     b68  vmovups ymm1,[r10+20h]
     b6e  vpbroadcastd ymm2,[r11+0D8h]
     b77  vpaddd ymm8,ymm8,ymm2
     b7b  vfmadd213ps ymm8,ymm0,[r10+40h]
     b81  vpaddd ymm9,ymm9,ymm2
     b85  vfmadd213ps ymm9,ymm1,[r10+60h]
     b8b  vbroadcastss ymm2,[r11+0C0h]
     b94  vfmadd231ps ymm12,ymm8,ymm2
     b99  vfmadd231ps ymm13,ymm9,ymm2
     b9e  vpbroadcastd ymm2,[r11+0DCh]
     ba7  vpaddd ymm10,ymm10,ymm2
     bab  vfmadd213ps ymm10,ymm0,[r10+40h]
     bb1  vpaddd ymm11,ymm11,ymm2
     bb5  vfmadd213ps ymm11,ymm1,[r10+60h]
     bbb  vbroadcastss ymm2,[r11+0C4h]
     bc4  vfmadd231ps ymm14,ymm10,ymm2
     bc9  vfmadd231ps ymm15,ymm11,ymm2
     bce  add r10,280h
     bd5  add r11,100h
     bdc  dec rbx
     bdf  jne near 0000000000000938h
     be5  vmovups [rbp],ymm12
     bea  vmovups [rbp+20h],ymm13
     bef  vmovups [rbp+r8],ymm14
     bf6  vmovups [rbp+r8+20h],ymm15
     bfd  vzeroupper
     c00  pop r12
     c02  pop rbp
     c03  pop rbx
     c04  ret
     c05  (bad)
     c09  add [rax],eax
     c0b  add [rax],eax
     c0d  adc [rax],al
     c0f  adc [rax],al

gemm_byte_q8_1x2:
     c40  push rbx
     c41  push rbp
     c42  push r12
     c44  test rcx,rcx
     c47  je near 0000000000001244h
     c4d  lea rax,[rel 124Ch]
     c54  lea rbp,[rdx]
     c57  lea r10,[rdi]
     c5a  mov r11,rsi
     c5d  mov rbx,rcx
     c60  vmovups ymm8,[rbp]
     c65  vmovups ymm9,[rbp+r8]
     c6c  vmovdqu ymm1,[r10+80h]
     c75  vpbroadcastd ymm2,[rax]
     c7a  vpand ymm0,ymm1,ymm2
     c7e  vpsrlw ymm1,ymm1,4
     c83  vpand ymm1,ymm1,ymm2
     c87  vpbroadcastd ymm2,[r11]
     c8c  vpmaddubsw ymm4,ymm0,ymm2
     c91  vpmaddubsw ymm5,ymm1,ymm2
     c96  vpbroadcastd ymm2,[r11+20h]
     c9c  vpmaddubsw ymm6,ymm0,ymm2
     ca1  vpmaddubsw ymm7,ymm1,ymm2
     ca6  vmovdqu ymm1,[r10+0C0h]
     caf  vpbroadcastd ymm2,[rax]
     cb4  vpand ymm0,ymm1,ymm2
     cb8  vpsrlw ymm1,ymm1,4
     cbd  vpand ymm1,ymm1,ymm2
     cc1  vpbroadcastd ymm2,[r11+4]
     cc7  vpmaddubsw ymm3,ymm0,ymm2
     ccc  vpmaddubsw ymm2,ymm1,ymm2
     cd1  vpaddw ymm4,ymm4,ymm3
     cd5  vpaddw ymm5,ymm5,ymm2
     cd9  vpbroadcastd ymm2,[r11+24h]
     cdf  vpmaddubsw ymm3,ymm0,ymm2
     ce4  vpmaddubsw ymm2,ymm1,ymm2
     ce9  vpaddw ymm6,ymm6,ymm3
     ced  vpaddw ymm7,ymm7,ymm2
     cf1  vmovdqu ymm1,[r10+100h]
     cfa  vpbroadcastd ymm2,[rax]
     cff  vpand ymm0,ymm1,ymm2
     d03  vpsrlw ymm1,ymm1,4
     d08  vpand ymm1,ymm1,ymm2
     d0c  vpbroadcastd ymm2,[r11+8]
     d12  vpmaddubsw ymm3,ymm0,ymm2
     d17  vpmaddubsw ymm2,ymm1,ymm2
     d1c  vpaddw ymm4,ymm4,ymm3
     d20  vpaddw ymm5,ymm5,ymm2
     d24  vpbroadcastd ymm2,[r11+28h]
     d2a  vpmaddubsw ymm3,ymm0,ymm2
     d2f  vpmaddubsw ymm2,ymm1,ymm2
     d34  vpaddw ymm6,ymm6,ymm3
     d38  vpaddw ymm7,ymm7,ymm2
     d3c  vmovdqu ymm1,[r10+140h]
     d45  vpbroadcastd ymm2,[rax]
     d4a  vpand ymm0,ymm1,ymm2
     d4e  vpsrlw ymm1,ymm1,4
     d53  vpand ymm1,ymm1,ymm2
     d57  vpbroadcastd ymm2,[r11+0Ch]
     d5d  vpmaddubsw ymm3,ymm0,ymm2
     d62  vpmaddubsw ymm2,ymm1,ymm2
     d67  vpaddw ymm4,ymm4,ymm3
     d6b  vpaddw ymm5,ymm5,ymm2
     d6f  vpbroadcastd ymm2,[r11+2Ch]
     d75  vpmaddubsw ymm3,ymm0,ymm2
     d7a  vpmaddubsw ymm2,ymm1,ymm2
     d7f  vpaddw ymm6,ymm6,ymm3
     d83  vpaddw ymm7,ymm7,ymm2
     d87  vmovdqu ymm1,[r10+180h]
     d90  vpbroadcastd ymm2,[rax]
     d95  vpand ymm0,ymm1,ymm2
     d99  vpsrlw ymm1,ymm1,4
     d9e  vpand ymm1,ymm1,ymm2
     da2  vpbroadcastd ymm2,[r11+10h]
     da8  vpmaddubsw ymm3,ymm0,ymm2
     dad  vpmaddubsw ymm2,ymm1,ymm2
     db2  vpaddw ymm4,ymm4,ymm3
     db6  vpaddw ymm5,ymm5,ymm2
     dba  vpbroadcastd ymm2,[r11+30h]
     dc0  vpmaddubsw ymm3,ymm0,ymm2
     dc5  vpmaddubsw ymm2,ymm1,ymm2
     dca  vpaddw ymm6,ymm6,ymm3
     dce  vpaddw ymm7,ymm7,ymm2
     dd2  vmovdqu ymm1,[r10+1C0h]
     ddb  vpbroadcastd ymm2,[rax]
     de0  vpand ymm0,ymm1,ymm2
     de4  vpsrlw ymm1,ymm1,4
     de9  vpand ymm1,ymm1,ymm2
     ded  vpbroadcastd ymm2,[r11+14h]
     df3  vpmaddubsw ymm3,ymm0,ymm2
     df8  vpmaddubsw ymm2,ymm1,ymm2
     dfd  vpaddw ymm4,ymm4,ymm3
     e01  vpaddw ymm5,ymm5,ymm2
     e05  vpbroadcastd ymm2,[r11+34h]
     e0b  vpmaddubsw ymm3,ymm0,ymm2
     e10  vpmaddubsw ymm2,ymm1,ymm2
     e15  vpaddw ymm6,ymm6,ymm3
     e19  vpaddw ymm7,ymm7,ymm2
     e1d  vmovdqu ymm1,[r10+200h]
     e26  vpbroadcastd ymm2,[rax]
     e2b  vpand ymm0,ymm1,ymm2
     e2f  vpsrlw ymm1,ymm1,4
     e34  vpand ymm1,ymm1,ymm2
     e38  vpbroadcastd ymm2,[r11+18h]
     e3e  vpmaddubsw ymm3,ymm0,ymm2
     e43  vpmaddubsw ymm2,ymm1,ymm2
     e48  vpaddw ymm4,ymm4,ymm3
     e4c  vpaddw ymm5,ymm5,ymm2
     e50  vpbroadcastd ymm2,[r11+38h]
     e56  vpmaddubsw ymm3,ymm0,ymm2
     e5b  vpmaddubsw ymm2,ymm1,ymm2
     e60  vpaddw ymm6,ymm6,ymm3
     e64  vpaddw ymm7,ymm7,ymm2
     e68  vmovdqu ymm1,[r10+240h]
     e71  vpbroadcastd ymm2,[rax]
     e76  vpand ymm0,ymm1,ymm2
     e7a  vpsrlw ymm1,ymm1,4
     e7f  vpand ymm1,ymm1,ymm2
     e83  vpbroadcastd ymm2,[r11+1Ch]
     e89  vpmaddubsw ymm3,ymm0,ymm2
     e8e  vpmaddubsw ymm2,ymm1,ymm2
     e93  vpaddw ymm4,ymm4,ymm3
     e97  vpaddw ymm5,ymm5,ymm2
     e9b  vpbroadcastd ymm2,[r11+3Ch]
     ea1  vpmaddubsw ymm3,ymm0,ymm2
     ea6  vpmaddubsw ymm2,ymm1,ymm2
     eab  vpaddw ymm6,ymm6,ymm3
     eaf  vpaddw ymm7,ymm7,ymm2
     eb3  vmovups ymm0,[r10]
     eb8  vmovups ymm1,[r10+40h]
     ebe  vpbroadcastd ymm3,[rax+4]
     ec4  vpbroadcastd ymm2,[rax+8]
     eca  vpmaddwd ymm4,ymm4,ymm3
     ece  vpmaddwd ymm5,ymm5,ymm2
     ed2  vpaddd ymm4,ymm4,ymm5
     ed6  vpbroadcastd ymm2,[r11+0D8h]
     edf  vpaddd ymm4,ymm4,ymm2
     ee3  vfmadd213ps ymm4,ymm0,ymm1
     ee8  vbroadcastss ymm2,[r11+0C0h]
     ef1  vfmadd231ps ymm8,ymm4,ymm2
     ef6  vpbroadcastd ymm2,[rax+8]
     efc  vpmaddwd ymm6,ymm6,ymm3
     f00  vpmaddwd ymm7,ymm7,ymm2
     f04  vpaddd ymm6,ymm6,ymm7
     f08  vpbroadcastd ymm2,[r11+0DCh]
     f11  vpaddd ymm6,ymm6,ymm2
     f15  vfmadd213ps ymm6,ymm0,ymm1
     f1a  vbroadcastss ymm2,[r11+0C4h]
     f23  vfmadd231ps ymm9,ymm6,ymm2
     f28  add r10,280h
     f2f  add r11,100h
     f36  dec rbx
     f39  jne near 0000000000000C6Ch
     f3f  vmovups [rbp],ymm8
     f44  vmovups [rbp+r8],ymm9
     f4b  lea rbp,[rdx+20h]
     f4f  lea r10,[rdi+20h]
     f53  mov r11,rsi
     f56  mov rbx,rcx
     f59  vmovups ymm8,[rbp]
     f5e  vmovups ymm9,[rbp+r8]
     f65  vmovdqu ymm1,[r10+80h]
     f6e  vpbroadcastd ymm2,[rax]
     f73  vpand ymm0,ymm1,ymm2
     f77  vpsrlw ymm1,ymm1,4
     f7c  vpand ymm1,ymm1,ymm2
     f80  vpbroadcastd ymm2,[r11]
     f85  vpmaddubsw ymm4,ymm0,ymm2
     f8a  vpmaddubsw ymm5,ymm1,ymm2
     f8f  vpbroadcastd ymm2,[r11+20h]
     f95  vpmaddubsw ymm6,ymm0,ymm2
     f9a  vpmaddubsw ymm7,ymm1,ymm2
     f9f  vmovdqu ymm1,[r10+0C0h]
     fa8  vpbroadcastd ymm2,[rax]
     fad  vpand ymm0,ymm1,ymm2
     fb1  vpsrlw ymm1,ymm1,4
     fb6  vpand ymm1,ymm1,ymm2
     fba  vpbroadcastd ymm2,[r11+4]
     fc0  vpmaddubsw ymm3,ymm0,ymm2
     fc5  vpmaddubsw ymm2,ymm1,ymm2
     fca  vpaddw ymm4,ymm4,ymm3
     fce  vpaddw ymm5,ymm5,ymm2
     fd2  vpbroadcastd ymm2,[r11+24h]
     fd8  vpmaddubsw ymm3,ymm0,ymm2
     fdd  vpmaddubsw ymm2,ymm1,ymm2
     fe2  vpaddw ymm6,ymm6,ymm3
     fe6  vpaddw ymm7,ymm7,ymm2
     fea  vmovdqu ymm1,[r10+100h]
     ff3  vpbroadcastd ymm2,[rax]
     ff8  vpand ymm0,ymm1,ymm2
     ffc  vpsrlw ymm1,ymm1,4
    1001  vpand ymm1,ymm1,ymm2
    1005  vpbroadcastd ymm2,[r11+8]
    100b  vpmaddubsw ymm3,ymm0,ymm2
    1010  vpmaddubsw ymm2,ymm1,ymm2
    1015  vpaddw ymm4,ymm4,ymm3
    1019  vpaddw ymm5,ymm5,ymm2
    101d  vpbroadcastd ymm2,[r11+28h]
    1023  vpmaddubsw ymm3,ymm0,ymm2
    1028  vpmaddubsw ymm2,ymm1,ymm2
    102d  vpaddw ymm6,ymm6,ymm3
    1031  vpaddw ymm7,ymm7,ymm2
    1035  vmovdqu ymm1,[r10+140h]
    103e  vpbroadcastd ymm2,[rax]
    1043  vpand ymm0,ymm1,ymm2
    1047  vpsrlw ymm1,ymm1,4
    104c  vpand ymm1,ymm1,ymm2
    1050  vpbroadcastd ymm2,[r11+0Ch]
    1056  vpmaddubsw ymm3,ymm0,ymm2
    105b  vpmaddubsw ymm2,ymm1,ymm2
    1060  vpaddw ymm4,ymm4,ymm3
    1064  vpaddw ymm5,ymm5,ymm2
    1068  vpbroadcastd ymm2,[r11+2Ch]
    106e  vpmaddubsw ymm3,ymm0,ymm2
    1073  vpmaddubsw ymm2,ymm1,ymm2
    1078  vpaddw ymm6,ymm6,ymm3
    107c  vpaddw ymm7,ymm7,ymm2
    1080  vmovdqu ymm1,[r10+180h]
    1089  vpbroadcastd ymm2,[rax]
    108e  vpand ymm0,ymm1,ymm2
    1092  vpsrlw ymm1,ymm1,4
    1097  vpand ymm1,ymm1,ymm2
    109b  vpbroadcastd ymm2,[r11+10h]
    10a1  vpmaddubsw ymm3,ymm0,ymm2
    10a6  vpmaddubsw ymm2,ymm1,ymm2
    10ab  vpaddw ymm4,ymm4,ymm3
    10af  vpaddw ymm5,ymm5,ymm2
    10b3  vpbroadcastd ymm2,[r11+30h]
    10b9  vpmaddubsw ymm3,ymm0,ymm2
    10be  vpmaddubsw ymm2,ymm1,ymm2
    10c3  vpaddw ymm6,ymm6,ymm3
    10c7  vpaddw ymm7,ymm7,ymm2
    10cb  vmovdqu ymm1,[r10+1C0h]
    10d4  vpbroadcastd ymm2,[rax]
    10d9  vpand ymm0,ymm1,ymm2
    10dd  vpsrlw ymm1,ymm1,4
    10e2  vpand ymm1,ymm1,ymm2
    10e6  vpbroadcastd ymm2,[r11+14h]
    10ec  vpmaddubsw ymm3,ymm0,ymm2
    10f1  vpmaddubsw ymm2,ymm1,ymm2
    10f6  vpaddw ymm4,ymm4,ymm3
    10fa  vpaddw ymm5,ymm5,ymm2
    10fe  vpbroadcastd ymm2,[r11+34h]
    1104  vpmaddubsw ymm3,ymm0,ymm2
    1109  vpmaddubsw ymm2,ymm1,ymm2
    110e  vpaddw ymm6,ymm6,ymm3
    1112  vpaddw ymm7,ymm7,ymm2
    1116  vmovdqu ymm1,[r10+200h]
    111f  vpbroadcastd ymm2,[rax]
    1124  vpand ymm0,ymm1,ymm2
    1128  vpsrlw ymm1,ymm1,4
    112d  vpand ymm1,ymm1,ymm2
    1131  vpbroadcastd ymm2,[r11+18h]
    1137  vpmaddubsw ymm3,ymm0,ymm2
    113c  vpmaddubsw ymm2,ymm1,ymm2
    1141  vpaddw ymm4,ymm4,ymm3
    1145  vpaddw ymm5,ymm5,ymm2
    1149  vpbroadcastd ymm2,[r11+38h]
    114f  vpmaddubsw ymm3,ymm0,ymm2
    1154  vpmaddubsw ymm2,ymm1,ymm2
    1159  vpaddw ymm6,ymm6,ymm3
    115d  vpaddw ymm7,ymm7,ymm2
    1161  vmovdqu ymm1,[r10+240h]
    116a  vpbroadcastd ymm2,[rax]
    116f  vpand ymm0,ymm1,ymm2
    1173  vpsrlw ymm1,ymm1,4
    1178  vpand ymm1,ymm1,ymm2
    117c  vpbroadcastd ymm2,[r11+1Ch]
    1182  vpmaddubsw ymm3,ymm0,ymm2
    1187  vpmaddubsw ymm2,ymm1,ymm2
    118c  vpaddw ymm4,ymm4,ymm3
    1190  vpaddw ymm5,ymm5,ymm2
    1194  vpbroadcastd ymm2,[r11+3Ch]
    119a  vpmaddubsw ymm3,ymm0,ymm2
    119f  vpmaddubsw ymm2,ymm1,ymm2
    11a4  vpaddw ymm6,ymm6,ymm3
    11a8  vpaddw ymm7,ymm7,ymm2
    11ac  vmovups ymm0,[r10]
    11b1  vmovups ymm1,[r10+40h]
    11b7  vpbroadcastd ymm3,[rax+4]
    11bd  vpbroadcastd ymm2,[rax+8]
    11c3  vpmaddwd ymm4,ymm4,ymm3
    11c7  vpmaddwd ymm5,ymm5,ymm2
    11cb  vpaddd ymm4,ymm4,ymm5
    11cf  vpbroadcastd ymm2,[r11+0D8h]
    11d8  vpaddd ymm4,ymm4,ymm2
    11dc  vfmadd213ps ymm4,ymm0,ymm1
    11e1  vbroadcastss ymm2,[r11+0C0h]
    11ea  vfmadd231ps ymm8,ymm4,ymm2
    11ef  vpbroadcastd ymm2,[rax+8]
    11f5  vpmaddwd ymm6,ymm6,ymm3
    11f9  vpmaddwd ymm7,ymm7,ymm2
    11fd  vpaddd ymm6,ymm6,ymm7
    1201  vpbroadcastd ymm2,[r11+0DCh]
    120a  vpaddd ymm6,ymm6,ymm2
    120e  vfmadd213ps ymm6,ymm0,ymm1
    1213  vbroadcastss ymm2,[r11+0C4h]
    121c  vfmadd231ps ymm9,ymm6,ymm2
    1221  add r10,280h
    1228  add r11,100h
    122f  dec rbx
    1232  jne near 0000000000000F65h
    1238  vmovups [rbp],ymm8
    123d  vmovups [rbp+r8],ymm9
    1244  vzeroupper
    1247  pop r12
    1249  pop rbp
    124a  pop rbx
    124b  ret
    124c  (bad)
    1250  add [rax],eax
    1252  add [rax],eax
    1254  adc [rax],al
    1256  adc [rax],al

decode_mxfp4:
    1280  lea r8,[rel 1490h]
    1287  vmovdqu ymm0,[r8+20h]
    128d  test rcx,rcx
    1290  je near 000000000000148Ch
    1296  vpmovzxbd ymm9,[rdi]
    129b  vpslld ymm9,ymm9,17h
    12a1  vpmaxud ymm9,ymm9,[r8+80h]
    12aa  vmulps ymm9,ymm9,[r8+0A0h]
    12b3  vmulps ymm10,ymm9,[r8+0E0h]
    12bc  vmovups [rdx],ymm9
    12c0  vmovups [rdx+40h],ymm10
    12c5  vpmovzxbd ymm9,[rdi+8]
    12cb  vpslld ymm9,ymm9,17h
    12d1  vpmaxud ymm9,ymm9,[r8+80h]
    12da  vmulps ymm9,ymm9,[r8+0A0h]
    12e3  vmulps ymm10,ymm9,[r8+0E0h]
    12ec  vmovups [rdx+20h],ymm9
    12f1  vmovups [rdx+60h],ymm10
    12f6  vmovdqu ymm1,[rsi]
    12fa  vpsrlw ymm2,ymm1,4
    12ff  vpand ymm1,ymm1,[r8]
    1304  vpand ymm2,ymm2,[r8]
    1309  vpshufb ymm1,ymm0,ymm1
    130e  vpshufb ymm2,ymm0,ymm2
    1313  vmovdqu [rdx+80h],ymm1
    131b  vmovdqu [rdx+0C0h],ymm2
    1323  vmovdqu ymm3,[rsi+20h]
    1328  vpsrlw ymm4,ymm3,4
    132d  vpand ymm3,ymm3,[r8]
    1332  vpand ymm4,ymm4,[r8]
    1337  vpshufb ymm3,ymm0,ymm3
    133c  vpshufb ymm4,ymm0,ymm4
    1341  vmovdqu [rdx+0A0h],ymm3
    1349  vmovdqu [rdx+0E0h],ymm4
    1351  vmovdqu ymm5,[rsi+40h]
    1356  vpsrlw ymm6,ymm5,4
    135b  vpand ymm5,ymm5,[r8]
    1360  vpand ymm6,ymm6,[r8]
    1365  vpshufb ymm5,ymm0,ymm5
    136a  vpshufb ymm6,ymm0,ymm6
    136f  vmovdqu [rdx+100h],ymm5
    1377  vmovdqu [rdx+140h],ymm6
    137f  vmovdqu ymm7,[rsi+60h]
    1384  vpsrlw ymm8,ymm7,4
    1389  vpand ymm7,ymm7,[r8]
    138e  vpand ymm8,ymm8,[r8]
    1393  vpshufb ymm7,ymm0,ymm7
    1398  vpshufb ymm8,ymm0,ymm8
    139d  vmovdqu [rdx+120h],ymm7
    13a5  vmovdqu [rdx+160h],ymm8
    13ad  vmovdqu ymm1,[rsi+80h]
    13b5  vpsrlw ymm2,ymm1,4
    13ba  vpand ymm1,ymm1,[r8]
    13bf  vpand ymm2,ymm2,[r8]
    13c4  vpshufb ymm1,ymm0,ymm1
    13c9  vpshufb ymm2,ymm0,ymm2
    13ce  vmovdqu [rdx+180h],ymm1
    13d6  vmovdqu [rdx+1C0h],ymm2
    13de  vmovdqu ymm3,[rsi+0A0h]
    13e6  vpsrlw ymm4,ymm3,4
    13eb  vpand ymm3,ymm3,[r8]
    13f0  vpand ymm4,ymm4,[r8]
    13f5  vpshufb ymm3,ymm0,ymm3
    13fa  vpshufb ymm4,ymm0,ymm4
    13ff  vmovdqu [rdx+1A0h],ymm3
    1407  vmovdqu [rdx+1E0h],ymm4
    140f  vmovdqu ymm5,[rsi+0C0h]
    1417  vpsrlw ymm6,ymm5,4
    141c  vpand ymm5,ymm5,[r8]
    1421  vpand ymm6,ymm6,[r8]
    1426  vpshufb ymm5,ymm0,ymm5
    142b  vpshufb ymm6,ymm0,ymm6
    1430  vmovdqu [rdx+200h],ymm5
    1438  vmovdqu [rdx+240h],ymm6
    1440  vmovdqu ymm7,[rsi+0E0h]
    1448  vpsrlw ymm8,ymm7,4
    144d  vpand ymm7,ymm7,[r8]
    1452  vpand ymm8,ymm8,[r8]
    1457  vpshufb ymm7,ymm0,ymm7
    145c  vpshufb ymm8,ymm0,ymm8
    1461  vmovdqu [rdx+220h],ymm7
    1469  vmovdqu [rdx+260h],ymm8
    1471  add rdi,10h
    1475  add rsi,100h
    147c  add rdx,280h
    1483  dec rcx
    1486  jne near 0000000000001296h
    148c  vzeroupper
    148f  ret
    1490  (bad)
    1494  (bad)
    1498  (bad)
    149c  (bad)
    14a0  (bad)
    14a4  (bad)
    14a8  (bad)
    14ac  (bad)
    14b0  or al,0Dh
    14b2  (bad)
    14b4  adc [rdx],dl
    14b6  adc al,18h
    14b8  or al,0Bh
    14ba  or cl,[rcx]
    14bc  or [rsi],al
    14be  add al,0
    14c0  or al,0Dh
    14c2  (bad)
    14c4  adc [rdx],dl
    14c6  adc al,18h
    14c8  or al,0Bh
    14ca  or cl,[rcx]
    14cc  or [rsi],al
    14ce  add al,0
    14d0  add [rax],eax
    14d2  add [rax],eax
    14d4  add [rax],eax
    14d6  add [rax],eax
    14d8  add [rax],eax
    14da  add [rax],eax
    14dc  add [rax],eax
    14de  add [rax],eax
    14e0  add [rax],eax
    14e2  add [rax],eax
    14e4  add [rax],eax
    14e6  add [rax],eax
    14e8  add [rax],eax
    14ea  add [rax],eax
    14ec  add [rax],eax
    14ee  add [rax],eax
    14f0  add byte [rax-7F7F7F80h],80h
    14f7  add byte [rax-7F7F7F80h],80h
    14fe  add byte [rax-7F7F7F80h],80h
    1505  add byte [rax-7F7F7F80h],80h
    150c  add byte [rax+8080h],40h
    1513  add [rax],al
    1515  add [rax],al
    1518  add [rax],al
    151a  add [rax],al
    151d  add [rax],al
    1520  add [rax],al
    1522  add [rax],al
    1525  add [rax],al
    1528  add [rax],al
    152a  add [rax],al
    152d  add [rax],al
    1530  add [rax],al
    1532  add [rdi],bh
    1534  add [rax],al
    1536  add [rdi],bh
    1538  add [rax],al
    153a  add [rdi],bh
    153c  add [rax],al
    153e  add [rdi],bh
    1540  add [rax],al
    1542  add [rdi],bh
    1544  add [rax],al
    1546  add [rdi],bh
    1548  add [rax],al
    154a  add [rdi],bh
    154c  add [rax],al
    154e  add [rdi],bh
    1550  hlt
    1551  (bad)
    1553  push rsp
    1555  (bad)
    1557  push rsp
    1559  (bad)
    155b  push rsp
    155d  (bad)
    155f  push rsp
    1561  (bad)
    1563  push rsp
    1565  (bad)
    1567  push rsp
    1569  (bad)
    156b  push rsp
    156d  (bad)
    156f  inc dword [rax]
    1571  add [rax-35h],al
    1574  add [rax],al
    1576  retf
    1578  add [rax],al
    157a  retf
    157c  add [rax],al
    157e  retf
    1580  add [rax],al
    1582  retf
    1584  add [rax],al
    1586  retf
    1588  add [rax],al
    158a  retf
    158c  add [rax],al
    158e  retf

dot_bf16_f32_k64_t1:
    15c0  push rbx
    15c1  mov rbx,[rsi]
    15c4  vpxor ymm7,ymm7,ymm7
    15c8  vpxor ymm8,ymm8,ymm8
    15cd  vpxor ymm9,ymm9,ymm9
    15d2  vpxor ymm10,ymm10,ymm10
    15d7  vpxor ymm11,ymm11,ymm11
    15dc  vpxor ymm12,ymm12,ymm12
    15e1  vpxor ymm13,ymm13,ymm13
    15e6  vpxor ymm14,ymm14,ymm14
    15eb  mov r8,rdi
    15ee  lea r9,[rdi]
    15f1  xor r10,r10
    15f4  vmovups ymm1,[r9]
    15f9  vpslld ymm1,ymm1,10h
    15fe  vmovups ymm2,[r9+20h]
    1604  vpslld ymm2,ymm2,10h
    1609  vbroadcastss ymm4,[rbx+r10]
    160f  vfmadd231ps ymm7,ymm1,ymm4
    1614  vfmadd231ps ymm11,ymm2,ymm4
    1619  vmovups ymm1,[r9]
    161e  vpand ymm1,ymm1,[rel 16E3h]
    1626  vmovups ymm2,[r9+20h]
    162c  vpand ymm2,ymm2,[rel 16E3h]
    1634  vbroadcastss ymm4,[rbx+r10+4]
    163b  vfmadd231ps ymm8,ymm1,ymm4
    1640  vfmadd231ps ymm12,ymm2,ymm4
    1645  vmovups ymm1,[r9+40h]
    164b  vpslld ymm1,ymm1,10h
    1650  vmovups ymm2,[r9+60h]
    1656  vpslld ymm2,ymm2,10h
    165b  vbroadcastss ymm4,[rbx+r10+8]
    1662  vfmadd231ps ymm9,ymm1,ymm4
    1667  vfmadd231ps ymm13,ymm2,ymm4
    166c  vmovups ymm1,[r9+40h]
    1672  vpand ymm1,ymm1,[rel 16E3h]
    167a  vmovups ymm2,[r9+60h]
    1680  vpand ymm2,ymm2,[rel 16E3h]
    1688  vbroadcastss ymm4,[rbx+r10+0Ch]
    168f  vfmadd231ps ymm10,ymm1,ymm4
    1694  vfmadd231ps ymm14,ymm2,ymm4
    1699  add r9,80h
    16a0  add r10,10h
    16a4  cmp r10,100h
    16ab  jne near 00000000000015F4h
    16b1  mov rax,rdx
    16b4  vaddps ymm7,ymm7,ymm8
    16b9  vaddps ymm9,ymm9,ymm10
    16be  vaddps ymm7,ymm7,ymm9
    16c3  vmovups [rax],ymm7
    16c7  vaddps ymm11,ymm11,ymm12
    16cc  vaddps ymm13,ymm13,ymm14
    16d1  vaddps ymm11,ymm11,ymm13
    16d6  vmovups [rax+20h],ymm11
    16db  add rax,rcx
    16de  vzeroupper
    16e1  pop rbx
    16e2  ret
    16e3  add [rax],al
    16e5  (bad)
    16e7  add [rax],al
    16e9  (bad)
    16eb  add [rax],al
    16ed  (bad)
    16ef  add [rax],al
    16f1  (bad)
    16f3  add [rax],al
    16f5  (bad)
    16f7  add [rax],al
    16f9  (bad)
    16fb  add [rax],al
    16fd  (bad)
    16ff  add [rax],al
    1701  (bad)

dot_int4_f32_k64_t1:
    1740  push rbx
    1741  mov rbx,[rsi]
    1744  lea r11,[rel 2039h]
    174b  vpxor ymm7,ymm7,ymm7
    174f  vpxor ymm8,ymm8,ymm8
    1754  vpxor ymm9,ymm9,ymm9
    1759  vpxor ymm10,ymm10,ymm10
    175e  vpxor ymm11,ymm11,ymm11
    1763  vpxor ymm12,ymm12,ymm12
    1768  vpxor ymm13,ymm13,ymm13
    176d  vpxor ymm14,ymm14,ymm14
    1772  mov r8,rdi
    1775  lea r9,[rdi+40h]
    1779  xor r10,r10
    177c  vcvtph2ps ymm5,[r8]
    1781  vcvtph2ps ymm6,[r8+10h]
    1787  vmovdqu ymm1,[r9]
    178c  vpsrlw ymm2,ymm1,4
    1791  vpand ymm1,ymm1,[r11]
    1796  vpand ymm2,ymm2,[r11]
    179b  vpsubb ymm1,ymm1,[rel 2139h]
    17a3  vpsubb ymm2,ymm2,[rel 2139h]
    17ab  vpslld ymm3,ymm1,18h
    17b0  vpsrad ymm3,ymm3,18h
    17b5  vcvtdq2ps ymm3,ymm3
    17b9  vmulps ymm3,ymm3,ymm5
    17bd  vbroadcastss ymm4,[rbx+r10]
    17c3  vfmadd231ps ymm7,ymm3,ymm4
    17c8  vpslld ymm3,ymm1,10h
    17cd  vpsrad ymm3,ymm3,18h
    17d2  vcvtdq2ps ymm3,ymm3
    17d6  vmulps ymm3,ymm3,ymm5
    17da  vbroadcastss ymm4,[rbx+r10+4]
    17e1  vfmadd231ps ymm8,ymm3,ymm4
    17e6  vpslld ymm3,ymm1,8
    17eb  vpsrad ymm3,ymm3,18h
    17f0  vcvtdq2ps ymm3,ymm3
    17f4  vmulps ymm3,ymm3,ymm5
    17f8  vbroadcastss ymm4,[rbx+r10+8]
    17ff  vfmadd231ps ymm9,ymm3,ymm4
    1804  vpsrad ymm3,ymm1,18h
    1809  vcvtdq2ps ymm3,ymm3
    180d  vmulps ymm3,ymm3,ymm5
    1811  vbroadcastss ymm4,[rbx+r10+0Ch]
    1818  vfmadd231ps ymm10,ymm3,ymm4
    181d  vpslld ymm3,ymm2,18h
    1822  vpsrad ymm3,ymm3,18h
    1827  vcvtdq2ps ymm3,ymm3
    182b  vmulps ymm3,ymm3,ymm5
    182f  vbroadcastss ymm4,[rbx+r10+10h]
    1836  vfmadd231ps ymm7,ymm3,ymm4
    183b  vpslld ymm3,ymm2,10h
    1840  vpsrad ymm3,ymm3,18h
    1845  vcvtdq2ps ymm3,ymm3
    1849  vmulps ymm3,ymm3,ymm5
    184d  vbroadcastss ymm4,[rbx+r10+14h]
    1854  vfmadd231ps ymm8,ymm3,ymm4
    1859  vpslld ymm3,ymm2,8
    185e  vpsrad ymm3,ymm3,18h
    1863  vcvtdq2ps ymm3,ymm3
    1867  vmulps ymm3,ymm3,ymm5
    186b  vbroadcastss ymm4,[rbx+r10+18h]
    1872  vfmadd231ps ymm9,ymm3,ymm4
    1877  vpsrad ymm3,ymm2,18h
    187c  vcvtdq2ps ymm3,ymm3
    1880  vmulps ymm3,ymm3,ymm5
    1884  vbroadcastss ymm4,[rbx+r10+1Ch]
    188b  vfmadd231ps ymm10,ymm3,ymm4
    1890  vmovdqu ymm1,[r9+20h]
    1896  vpsrlw ymm2,ymm1,4
    189b  vpand ymm1,ymm1,[r11]
    18a0  vpand ymm2,ymm2,[r11]
    18a5  vpsubb ymm1,ymm1,[rel 2139h]
    18ad  vpsubb ymm2,ymm2,[rel 2139h]
    18b5  vpslld ymm3,ymm1,18h
    18ba  vpsrad ymm3,ymm3,18h
    18bf  vcvtdq2ps ymm3,ymm3
    18c3  vmulps ymm3,ymm3,ymm6
    18c7  vbroadcastss ymm4,[rbx+r10]
    18cd  vfmadd231ps ymm11,ymm3,ymm4
    18d2  vpslld ymm3,ymm1,10h
    18d7  vpsrad ymm3,ymm3,18h
    18dc  vcvtdq2ps ymm3,ymm3
    18e0  vmulps ymm3,ymm3,ymm6
    18e4  vbroadcastss ymm4,[rbx+r10+4]
    18eb  vfmadd231ps ymm12,ymm3,ymm4
    18f0  vpslld ymm3,ymm1,8
    18f5  vpsrad ymm3,ymm3,18h
    18fa  vcvtdq2ps ymm3,ymm3
    18fe  vmulps ymm3,ymm3,ymm6
    1902  vbroadcastss ymm4,[rbx+r10+8]
    1909  vfmadd231ps ymm13,ymm3,ymm4
    190e  vpsrad ymm3,ymm1,18h
    1913  vcvtdq2ps ymm3,ymm3
    1917  vmulps ymm3,ymm3,ymm6
    191b  vbroadcastss ymm4,[rbx+r10+0Ch]
    1922  vfmadd231ps ymm14,ymm3,ymm4
    1927  vpslld ymm3,ymm2,18h
    192c  vpsrad ymm3,ymm3,18h
    1931  vcvtdq2ps ymm3,ymm3
    1935  vmulps ymm3,ymm3,ymm6
    1939  vbroadcastss ymm4,[rbx+r10+10h]
    1940  vfmadd231ps ymm11,ymm3,ymm4
    1945  vpslld ymm3,ymm2,10h
    194a  vpsrad ymm3,ymm3,18h
    194f  vcvtdq2ps ymm3,ymm3
    1953  vmulps ymm3,ymm3,ymm6
    1957  vbroadcastss ymm4,[rbx+r10+14h]
    195e  vfmadd231ps ymm12,ymm3,ymm4
    1963  vpslld ymm3,ymm2,8
    1968  vpsrad ymm3,ymm3,18h
    196d  vcvtdq2ps ymm3,ymm3
    1971  vmulps ymm3,ymm3,ymm6
    1975  vbroadcastss ymm4,[rbx+r10+18h]
    197c  vfmadd231ps ymm13,ymm3,ymm4
    1981  vpsrad ymm3,ymm2,18h
    1986  vcvtdq2ps ymm3,ymm3
    198a  vmulps ymm3,ymm3,ymm6
    198e  vbroadcastss ymm4,[rbx+r10+1Ch]
    1995  vfmadd231ps ymm14,ymm3,ymm4
    199a  vmovdqu ymm1,[r9+40h]
    19a0  vpsrlw ymm2,ymm1,4
    19a5  vpand ymm1,ymm1,[r11]
    19aa  vpand ymm2,ymm2,[r11]
    19af  vpsubb ymm1,ymm1,[rel 2139h]
    19b7  vpsubb ymm2,ymm2,[rel 2139h]
    19bf  vpslld ymm3,ymm1,18h
    19c4  vpsrad ymm3,ymm3,18h
    19c9  vcvtdq2ps ymm3,ymm3
    19cd  vmulps ymm3,ymm3,ymm5
    19d1  vbroadcastss ymm4,[rbx+r10+20h]
    19d8  vfmadd231ps ymm7,ymm3,ymm4
    19dd  vpslld ymm3,ymm1,10h
    19e2  vpsrad ymm3,ymm3,18h
    19e7  vcvtdq2ps ymm3,ymm3
    19eb  vmulps ymm3,ymm3,ymm5
    19ef  vbroadcastss ymm4,[rbx+r10+24h]
    19f6  vfmadd231ps ymm8,ymm3,ymm4
    19fb  vpslld ymm3,ymm1,8
    1a00  vpsrad ymm3,ymm3,18h
    1a05  vcvtdq2ps ymm3,ymm3
    1a09  vmulps ymm3,ymm3,ymm5
    1a0d  vbroadcastss ymm4,[rbx+r10+28h]
    1a14  vfmadd231ps ymm9,ymm3,ymm4
    1a19  vpsrad ymm3,ymm1,18h
    1a1e  vcvtdq2ps ymm3,ymm3
    1a22  vmulps ymm3,ymm3,ymm5
    1a26  vbroadcastss ymm4,[rbx+r10+2Ch]
    1a2d  vfmadd231ps ymm10,ymm3,ymm4
    1a32  vpslld ymm3,ymm2,18h
    1a37  vpsrad ymm3,ymm3,18h
    1a3c  vcvtdq2ps ymm3,ymm3
    1a40  vmulps ymm3,ymm3,ymm5
    1a44  vbroadcastss ymm4,[rbx+r10+30h]
    1a4b  vfmadd231ps ymm7,ymm3,ymm4
    1a50  vpslld ymm3,ymm2,10h
    1a55  vpsrad ymm3,ymm3,18h
    1a5a  vcvtdq2ps ymm3,ymm3
    1a5e  vmulps ymm3,ymm3,ymm5
    1a62  vbroadcastss ymm4,[rbx+r10+34h]
    1a69  vfmadd231ps ymm8,ymm3,ymm4
    1a6e  vpslld ymm3,ymm2,8
    1a73  vpsrad ymm3,ymm3,18h
    1a78  vcvtdq2ps ymm3,ymm3
    1a7c  vmulps ymm3,ymm3,ymm5
    1a80  vbroadcastss ymm4,[rbx+r10+38h]
    1a87  vfmadd231ps ymm9,ymm3,ymm4
    1a8c  vpsrad ymm3,ymm2,18h
    1a91  vcvtdq2ps ymm3,ymm3
    1a95  vmulps ymm3,ymm3,ymm5
    1a99  vbroadcastss ymm4,[rbx+r10+3Ch]
    1aa0  vfmadd231ps ymm10,ymm3,ymm4
    1aa5  vmovdqu ymm1,[r9+60h]
    1aab  vpsrlw ymm2,ymm1,4
    1ab0  vpand ymm1,ymm1,[r11]
    1ab5  vpand ymm2,ymm2,[r11]
    1aba  vpsubb ymm1,ymm1,[rel 2139h]
    1ac2  vpsubb ymm2,ymm2,[rel 2139h]
    1aca  vpslld ymm3,ymm1,18h
    1acf  vpsrad ymm3,ymm3,18h
    1ad4  vcvtdq2ps ymm3,ymm3
    1ad8  vmulps ymm3,ymm3,ymm6
    1adc  vbroadcastss ymm4,[rbx+r10+20h]
    1ae3  vfmadd231ps ymm11,ymm3,ymm4
    1ae8  vpslld ymm3,ymm1,10h
    1aed  vpsrad ymm3,ymm3,18h
    1af2  vcvtdq2ps ymm3,ymm3
    1af6  vmulps ymm3,ymm3,ymm6
    1afa  vbroadcastss ymm4,[rbx+r10+24h]
    1b01  vfmadd231ps ymm12,ymm3,ymm4
    1b06  vpslld ymm3,ymm1,8
    1b0b  vpsrad ymm3,ymm3,18h
    1b10  vcvtdq2ps ymm3,ymm3
    1b14  vmulps ymm3,ymm3,ymm6
    1b18  vbroadcastss ymm4,[rbx+r10+28h]
    1b1f  vfmadd231ps ymm13,ymm3,ymm4
    1b24  vpsrad ymm3,ymm1,18h
    1b29  vcvtdq2ps ymm3,ymm3
    1b2d  vmulps ymm3,ymm3,ymm6
    1b31  vbroadcastss ymm4,[rbx+r10+2Ch]
    1b38  vfmadd231ps ymm14,ymm3,ymm4
    1b3d  vpslld ymm3,ymm2,18h
    1b42  vpsrad ymm3,ymm3,18h
    1b47  vcvtdq2ps ymm3,ymm3
    1b4b  vmulps ymm3,ymm3,ymm6
    1b4f  vbroadcastss ymm4,[rbx+r10+30h]
    1b56  vfmadd231ps ymm11,ymm3,ymm4
    1b5b  vpslld ymm3,ymm2,10h
    1b60  vpsrad ymm3,ymm3,18h
    1b65  vcvtdq2ps ymm3,ymm3
    1b69  vmulps ymm3,ymm3,ymm6
    1b6d  vbroadcastss ymm4,[rbx+r10+34h]
    1b74  vfmadd231ps ymm12,ymm3,ymm4
    1b79  vpslld ymm3,ymm2,8
    1b7e  vpsrad ymm3,ymm3,18h
    1b83  vcvtdq2ps ymm3,ymm3
    1b87  vmulps ymm3,ymm3,ymm6
    1b8b  vbroadcastss ymm4,[rbx+r10+38h]
    1b92  vfmadd231ps ymm13,ymm3,ymm4
    1b97  vpsrad ymm3,ymm2,18h
    1b9c  vcvtdq2ps ymm3,ymm3
    1ba0  vmulps ymm3,ymm3,ymm6
    1ba4  vbroadcastss ymm4,[rbx+r10+3Ch]
    1bab  vfmadd231ps ymm14,ymm3,ymm4
    1bb0  vmovdqu ymm1,[r9+80h]
    1bb9  vpsrlw ymm2,ymm1,4
    1bbe  vpand ymm1,ymm1,[r11]
    1bc3  vpand ymm2,ymm2,[r11]
    1bc8  vpsubb ymm1,ymm1,[rel 2139h]
    1bd0  vpsubb ymm2,ymm2,[rel 2139h]
    1bd8  vpslld ymm3,ymm1,18h
    1bdd  vpsrad ymm3,ymm3,18h
    1be2  vcvtdq2ps ymm3,ymm3
    1be6  vmulps ymm3,ymm3,ymm5
    1bea  vbroadcastss ymm4,[rbx+r10+40h]
    1bf1  vfmadd231ps ymm7,ymm3,ymm4
    1bf6  vpslld ymm3,ymm1,10h
    1bfb  vpsrad ymm3,ymm3,18h
    1c00  vcvtdq2ps ymm3,ymm3
    1c04  vmulps ymm3,ymm3,ymm5
    1c08  vbroadcastss ymm4,[rbx+r10+44h]
    1c0f  vfmadd231ps ymm8,ymm3,ymm4
    1c14  vpslld ymm3,ymm1,8
    1c19  vpsrad ymm3,ymm3,18h
    1c1e  vcvtdq2ps ymm3,ymm3
    1c22  vmulps ymm3,ymm3,ymm5
    1c26  vbroadcastss ymm4,[rbx+r10+48h]
    1c2d  vfmadd231ps ymm9,ymm3,ymm4
    1c32  vpsrad ymm3,ymm1,18h
    1c37  vcvtdq2ps ymm3,ymm3
    1c3b  vmulps ymm3,ymm3,ymm5
    1c3f  vbroadcastss ymm4,[rbx+r10+4Ch]
    1c46  vfmadd231ps ymm10,ymm3,ymm4
    1c4b  vpslld ymm3,ymm2,18h
    1c50  vpsrad ymm3,ymm3,18h
    1c55  vcvtdq2ps ymm3,ymm3
    1c59  vmulps ymm3,ymm3,ymm5
    1c5d  vbroadcastss ymm4,[rbx+r10+50h]
    1c64  vfmadd231ps ymm7,ymm3,ymm4
    1c69  vpslld ymm3,ymm2,10h
    1c6e  vpsrad ymm3,ymm3,18h
    1c73  vcvtdq2ps ymm3,ymm3
    1c77  vmulps ymm3,ymm3,ymm5
    1c7b  vbroadcastss ymm4,[rbx+r10+54h]
    1c82  vfmadd231ps ymm8,ymm3,ymm4
    1c87  vpslld ymm3,ymm2,8
    1c8c  vpsrad ymm3,ymm3,18h
    1c91  vcvtdq2ps ymm3,ymm3
    1c95  vmulps ymm3,ymm3,ymm5
    1c99  vbroadcastss ymm4,[rbx+r10+58h]
    1ca0  vfmadd231ps ymm9,ymm3,ymm4
    1ca5  vpsrad ymm3,ymm2,18h
    1caa  vcvtdq2ps ymm3,ymm3
    1cae  vmulps ymm3,ymm3,ymm5
    1cb2  vbroadcastss ymm4,[rbx+r10+5Ch]
    1cb9  vfmadd231ps ymm10,ymm3,ymm4
    1cbe  vmovdqu ymm1,[r9+0A0h]
    1cc7  vpsrlw ymm2,ymm1,4
    1ccc  vpand ymm1,ymm1,[r11]
    1cd1  vpand ymm2,ymm2,[r11]
    1cd6  vpsubb ymm1,ymm1,[rel 2139h]
    1cde  vpsubb ymm2,ymm2,[rel 2139h]
    1ce6  vpslld ymm3,ymm1,18h
    1ceb  vpsrad ymm3,ymm3,18h
    1cf0  vcvtdq2ps ymm3,ymm3
    1cf4  vmulps ymm3,ymm3,ymm6
    1cf8  vbroadcastss ymm4,[rbx+r10+40h]
    1cff  vfmadd231ps ymm11,ymm3,ymm4
    1d04  vpslld ymm3,ymm1,10h
    1d09  vpsrad ymm3,ymm3,18h
    1d0e  vcvtdq2ps ymm3,ymm3
    1d12  vmulps ymm3,ymm3,ymm6
    1d16  vbroadcastss ymm4,[rbx+r10+44h]
    1d1d  vfmadd231ps ymm12,ymm3,ymm4
    1d22  vpslld ymm3,ymm1,8
    1d27  vpsrad ymm3,ymm3,18h
    1d2c  vcvtdq2ps ymm3,ymm3
    1d30  vmulps ymm3,ymm3,ymm6
    1d34  vbroadcastss ymm4,[rbx+r10+48h]
    1d3b  vfmadd231ps ymm13,ymm3,ymm4
    1d40  vpsrad ymm3,ymm1,18h
    1d45  vcvtdq2ps ymm3,ymm3
    1d49  vmulps ymm3,ymm3,ymm6
    1d4d  vbroadcastss ymm4,[rbx+r10+4Ch]
    1d54  vfmadd231ps ymm14,ymm3,ymm4
    1d59  vpslld ymm3,ymm2,18h
    1d5e  vpsrad ymm3,ymm3,18h
    1d63  vcvtdq2ps ymm3,ymm3
    1d67  vmulps ymm3,ymm3,ymm6
    1d6b  vbroadcastss ymm4,[rbx+r10+50h]
    1d72  vfmadd231ps ymm11,ymm3,ymm4
    1d77  vpslld ymm3,ymm2,10h
    1d7c  vpsrad ymm3,ymm3,18h
    1d81  vcvtdq2ps ymm3,ymm3
    1d85  vmulps ymm3,ymm3,ymm6
    1d89  vbroadcastss ymm4,[rbx+r10+54h]
    1d90  vfmadd231ps ymm12,ymm3,ymm4
    1d95  vpslld ymm3,ymm2,8
    1d9a  vpsrad ymm3,ymm3,18h
    1d9f  vcvtdq2ps ymm3,ymm3
    1da3  vmulps ymm3,ymm3,ymm6
    1da7  vbroadcastss ymm4,[rbx+r10+58h]
    1dae  vfmadd231ps ymm13,ymm3,ymm4
    1db3  vpsrad ymm3,ymm2,18h
    1db8  vcvtdq2ps ymm3,ymm3
    1dbc  vmulps ymm3,ymm3,ymm6
    1dc0  vbroadcastss ymm4,[rbx+r10+5Ch]
    1dc7  vfmadd231ps ymm14,ymm3,ymm4
    1dcc  vmovdqu ymm1,[r9+0C0h]
    1dd5  vpsrlw ymm2,ymm1,4
    1dda  vpand ymm1,ymm1,[r11]
    1ddf  vpand ymm2,ymm2,[r11]
    1de4  vpsubb ymm1,ymm1,[rel 2139h]
    1dec  vpsubb ymm2,ymm2,[rel 2139h]
    1df4  vpslld ymm3,ymm1,18h
    1df9  vpsrad ymm3,ymm3,18h
    1dfe  vcvtdq2ps ymm3,ymm3
    1e02  vmulps ymm3,ymm3,ymm5
    1e06  vbroadcastss ymm4,[rbx+r10+60h]
    1e0d  vfmadd231ps ymm7,ymm3,ymm4
    1e12  vpslld ymm3,ymm1,10h
    1e17  vpsrad ymm3,ymm3,18h
    1e1c  vcvtdq2ps ymm3,ymm3
    1e20  vmulps ymm3,ymm3,ymm5
    1e24  vbroadcastss ymm4,[rbx+r10+64h]
    1e2b  vfmadd231ps ymm8,ymm3,ymm4
    1e30  vpslld ymm3,ymm1,8
    1e35  vpsrad ymm3,ymm3,18h
    1e3a  vcvtdq2ps ymm3,ymm3
    1e3e  vmulps ymm3,ymm3,ymm5
    1e42  vbroadcastss ymm4,[rbx+r10+68h]
    1e49  vfmadd231ps ymm9,ymm3,ymm4
    1e4e  vpsrad ymm3,ymm1,18h
    1e53  vcvtdq2ps ymm3,ymm3
    1e57  vmulps ymm3,ymm3,ymm5
    1e5b  vbroadcastss ymm4,[rbx+r10+6Ch]
    1e62  vfmadd231ps ymm10,ymm3,ymm4
    1e67  vpslld ymm3,ymm2,18h
    1e6c  vpsrad ymm3,ymm3,18h
    1e71  vcvtdq2ps ymm3,ymm3
    1e75  vmulps ymm3,ymm3,ymm5
    1e79  vbroadcastss ymm4,[rbx+r10+70h]
    1e80  vfmadd231ps ymm7,ymm3,ymm4
    1e85  vpslld ymm3,ymm2,10h
    1e8a  vpsrad ymm3,ymm3,18h
    1e8f  vcvtdq2ps ymm3,ymm3
    1e93  vmulps ymm3,ymm3,ymm5
    1e97  vbroadcastss ymm4,[rbx+r10+74h]
    1e9e  vfmadd231ps ymm8,ymm3,ymm4
    1ea3  vpslld ymm3,ymm2,8
    1ea8  vpsrad ymm3,ymm3,18h
    1ead  vcvtdq2ps ymm3,ymm3
    1eb1  vmulps ymm3,ymm3,ymm5
    1eb5  vbroadcastss ymm4,[rbx+r10+78h]
    1ebc  vfmadd231ps ymm9,ymm3,ymm4
    1ec1  vpsrad ymm3,ymm2,18h
    1ec6  vcvtdq2ps ymm3,ymm3
    1eca  vmulps ymm3,ymm3,ymm5
    1ece  vbroadcastss ymm4,[rbx+r10+7Ch]
    1ed5  vfmadd231ps ymm10,ymm3,ymm4
    1eda  vmovdqu ymm1,[r9+0E0h]
    1ee3  vpsrlw ymm2,ymm1,4
    1ee8  vpand ymm1,ymm1,[r11]
    1eed  vpand ymm2,ymm2,[r11]
    1ef2  vpsubb ymm1,ymm1,[rel 2139h]
    1efa  vpsubb ymm2,ymm2,[rel 2139h]
    1f02  vpslld ymm3,ymm1,18h
    1f07  vpsrad ymm3,ymm3,18h
    1f0c  vcvtdq2ps ymm3,ymm3
    1f10  vmulps ymm3,ymm3,ymm6
    1f14  vbroadcastss ymm4,[rbx+r10+60h]
    1f1b  vfmadd231ps ymm11,ymm3,ymm4
    1f20  vpslld ymm3,ymm1,10h
    1f25  vpsrad ymm3,ymm3,18h
    1f2a  vcvtdq2ps ymm3,ymm3
    1f2e  vmulps ymm3,ymm3,ymm6
    1f32  vbroadcastss ymm4,[rbx+r10+64h]
    1f39  vfmadd231ps ymm12,ymm3,ymm4
    1f3e  vpslld ymm3,ymm1,8
    1f43  vpsrad ymm3,ymm3,18h
    1f48  vcvtdq2ps ymm3,ymm3
    1f4c  vmulps ymm3,ymm3,ymm6
    1f50  vbroadcastss ymm4,[rbx+r10+68h]
    1f57  vfmadd231ps ymm13,ymm3,ymm4
    1f5c  vpsrad ymm3,ymm1,18h
    1f61  vcvtdq2ps ymm3,ymm3
    1f65  vmulps ymm3,ymm3,ymm6
    1f69  vbroadcastss ymm4,[rbx+r10+6Ch]
    1f70  vfmadd231ps ymm14,ymm3,ymm4
    1f75  vpslld ymm3,ymm2,18h
    1f7a  vpsrad ymm3,ymm3,18h
    1f7f  vcvtdq2ps ymm3,ymm3
    1f83  vmulps ymm3,ymm3,ymm6
    1f87  vbroadcastss ymm4,[rbx+r10+70h]
    1f8e  vfmadd231ps ymm11,ymm3,ymm4
    1f93  vpslld ymm3,ymm2,10h
    1f98  vpsrad ymm3,ymm3,18h
    1f9d  vcvtdq2ps ymm3,ymm3
    1fa1  vmulps ymm3,ymm3,ymm6
    1fa5  vbroadcastss ymm4,[rbx+r10+74h]
    1fac  vfmadd231ps ymm12,ymm3,ymm4
    1fb1  vpslld ymm3,ymm2,8
    1fb6  vpsrad ymm3,ymm3,18h
    1fbb  vcvtdq2ps ymm3,ymm3
    1fbf  vmulps ymm3,ymm3,ymm6
    1fc3  vbroadcastss ymm4,[rbx+r10+78h]
    1fca  vfmadd231ps ymm13,ymm3,ymm4
    1fcf  vpsrad ymm3,ymm2,18h
    1fd4  vcvtdq2ps ymm3,ymm3
    1fd8  vmulps ymm3,ymm3,ymm6
    1fdc  vbroadcastss ymm4,[rbx+r10+7Ch]
    1fe3  vfmadd231ps ymm14,ymm3,ymm4
    1fe8  add r8,20h
    1fec  add r9,100h
    1ff3  add r10,80h
    1ffa  cmp r10,100h
    2001  jne near 000000000000177Ch
    2007  mov rax,rdx
    200a  vaddps ymm7,ymm7,ymm8
    200f  vaddps ymm9,ymm9,ymm10
    2014  vaddps ymm7,ymm7,ymm9
    2019  vmovups [rax],ymm7
    201d  vaddps ymm11,ymm11,ymm12
    2022  vaddps ymm13,ymm13,ymm14
    2027  vaddps ymm11,ymm11,ymm13
    202c  vmovups [rax+20h],ymm11
    2031  add rax,rcx
    2034  vzeroupper
    2037  pop rbx
    2038  ret
    2039  (bad)
    203d  (bad)
    2041  (bad)
    2045  (bad)
    2049  (bad)
    204d  (bad)
    2051  (bad)
    2055  (bad)
    2059  or al,0Dh
    205b  (bad)
    205d  adc [rdx],dl
    205f  adc al,18h
    2061  or al,0Bh
    2063  or cl,[rcx]
    2065  or [rsi],al
    2067  add al,0
    2069  or al,0Dh
    206b  (bad)
    206d  adc [rdx],dl
    206f  adc al,18h
    2071  or al,0Bh
    2073  or cl,[rcx]
    2075  or [rsi],al
    2077  add al,0
    2079  add [rax],eax
    207b  add [rax],eax
    207d  add [rax],eax
    207f  add [rax],eax
    2081  add [rax],eax
    2083  add [rax],eax
    2085  add [rax],eax
    2087  add [rax],eax
    2089  add [rax],eax
    208b  add [rax],eax
    208d  add [rax],eax
    208f  add [rax],eax
    2091  add [rax],eax
    2093  add [rax],eax
    2095  add [rax],eax
    2097  add [rax],eax
    2099  add byte [rax-7F7F7F80h],80h
    20a0  add byte [rax-7F7F7F80h],80h
    20a7  add byte [rax-7F7F7F80h],80h
    20ae  add byte [rax-7F7F7F80h],80h
    20b5  add byte [rax+8080h],40h
    20bc  add [rax],al
    20be  add [rax],al
    20c1  add [rax],al
    20c3  add [rax],al
    20c6  add [rax],al
    20c9  add [rax],al
    20cb  add [rax],al
    20ce  add [rax],al
    20d1  add [rax],al
    20d3  add [rax],al
    20d6  add [rax],al
    20d9  add [rax],al
    20db  add [rdi],bh
    20dd  add [rax],al
    20df  add [rdi],bh
    20e1  add [rax],al
    20e3  add [rdi],bh
    20e5  add [rax],al
    20e7  add [rdi],bh
    20e9  add [rax],al
    20eb  add [rdi],bh
    20ed  add [rax],al
    20ef  add [rdi],bh
    20f1  add [rax],al
    20f3  add [rdi],bh
    20f5  add [rax],al
    20f7  add [rdi],bh
    20f9  clc
    20fa  (bad)
    20fc  (bad)
    20fe  (bad)
    2100  (bad)
    2102  (bad)
    2104  (bad)
    2106  (bad)
    2108  (bad)
    210a  (bad)
    210c  (bad)
    210e  (bad)
    2110  (bad)
    2112  (bad)
    2114  (bad)
    2116  (bad)
    2118  inc dword [rax]
    211a  add [rax-35h],al
    211d  add [rax],al
    211f  retf
    2121  add [rax],al
    2123  retf
    2125  add [rax],al
    2127  retf
    2129  add [rax],al
    212b  retf
    212d  add [rax],al
    212f  retf
    2131  add [rax],al
    2133  retf
    2135  add [rax],al
    2137  retf
    2139  or [rax],cl
    213b  or [rax],cl
    213d  or [rax],cl
    213f  or [rax],cl
    2141  or [rax],cl
    2143  or [rax],cl
    2145  or [rax],cl
    2147  or [rax],cl
    2149  or [rax],cl
    214b  or [rax],cl
    214d  or [rax],cl
    214f  or [rax],cl
    2151  or [rax],cl
    2153  or [rax],cl
    2155  or [rax],cl
    2157  or [rax],cl

score_F16_d32_g2_s3e000000:
    2180  cmp rcx,1
    2184  jl near 0000000000002377h
    218a  mov r8,[rdi]
    218d  mov r9,[rdi+40h]
    2191  vpxor ymm3,ymm3,ymm3
    2195  vpxor ymm4,ymm4,ymm4
    2199  vpxor ymm5,ymm5,ymm5
    219d  vpxor ymm6,ymm6,ymm6
    21a1  vpxor ymm7,ymm7,ymm7
    21a5  vpxor ymm8,ymm8,ymm8
    21aa  vpxor ymm9,ymm9,ymm9
    21af  vpxor ymm10,ymm10,ymm10
    21b4  xor r10,r10
    21b7  xor r11,r11
    21ba  prefetcht1 [r9+r10]
    21bf  prefetcht1 [r9+r10+40h]
    21c5  vcvtph2ps ymm0,[r8+r10]
    21cb  vcvtph2ps ymm1,[r8+r10+10h]
    21d2  vbroadcastss ymm2,[rsi+r11]
    21d8  vfmadd231ps ymm3,ymm0,ymm2
    21dd  vfmadd231ps ymm4,ymm1,ymm2
    21e2  vbroadcastss ymm2,[rsi+r11+80h]
    21ec  vfmadd231ps ymm5,ymm0,ymm2
    21f1  vfmadd231ps ymm6,ymm1,ymm2
    21f6  vcvtph2ps ymm0,[r8+r10+20h]
    21fd  vcvtph2ps ymm1,[r8+r10+30h]
    2204  vbroadcastss ymm2,[rsi+r11+4]
    220b  vfmadd231ps ymm7,ymm0,ymm2
    2210  vfmadd231ps ymm8,ymm1,ymm2
    2215  vbroadcastss ymm2,[rsi+r11+84h]
    221f  vfmadd231ps ymm9,ymm0,ymm2
    2224  vfmadd231ps ymm10,ymm1,ymm2
    2229  add r10,80h
    2230  add r11,10h
    2234  cmp r11,80h
    223b  jne near 00000000000021BAh
    2241  vaddps ymm11,ymm3,ymm7
    2245  vaddps ymm12,ymm4,ymm8
    224a  vaddps ymm13,ymm5,ymm9
    224f  vaddps ymm14,ymm6,ymm10
    2254  vpxor ymm3,ymm3,ymm3
    2258  vpxor ymm4,ymm4,ymm4
    225c  vpxor ymm5,ymm5,ymm5
    2260  vpxor ymm6,ymm6,ymm6
    2264  vpxor ymm7,ymm7,ymm7
    2268  vpxor ymm8,ymm8,ymm8
    226d  vpxor ymm9,ymm9,ymm9
    2272  vpxor ymm10,ymm10,ymm10
    2277  xor r10,r10
    227a  xor r11,r11
    227d  vcvtph2ps ymm0,[r8+r10+40h]
    2284  vcvtph2ps ymm1,[r8+r10+50h]
    228b  vbroadcastss ymm2,[rsi+r11+8]
    2292  vfmadd231ps ymm3,ymm0,ymm2
    2297  vfmadd231ps ymm4,ymm1,ymm2
    229c  vbroadcastss ymm2,[rsi+r11+88h]
    22a6  vfmadd231ps ymm5,ymm0,ymm2
    22ab  vfmadd231ps ymm6,ymm1,ymm2
    22b0  vcvtph2ps ymm0,[r8+r10+60h]
    22b7  vcvtph2ps ymm1,[r8+r10+70h]
    22be  vbroadcastss ymm2,[rsi+r11+0Ch]
    22c5  vfmadd231ps ymm7,ymm0,ymm2
    22ca  vfmadd231ps ymm8,ymm1,ymm2
    22cf  vbroadcastss ymm2,[rsi+r11+8Ch]
    22d9  vfmadd231ps ymm9,ymm0,ymm2
    22de  vfmadd231ps ymm10,ymm1,ymm2
    22e3  add r10,80h
    22ea  add r11,10h
    22ee  cmp r11,80h
    22f5  jne short 000000000000227Dh
    22f7  vaddps ymm3,ymm3,ymm7
    22fb  vaddps ymm3,ymm11,ymm3
    22ff  vbroadcastss ymm2,[rel 237Bh]
    2308  vmulps ymm3,ymm3,ymm2
    230c  vmovups [rdx],ymm3
    2310  vaddps ymm4,ymm4,ymm8
    2315  vaddps ymm4,ymm12,ymm4
    2319  vbroadcastss ymm2,[rel 237Bh]
    2322  vmulps ymm4,ymm4,ymm2
    2326  vmovups [rdx+20h],ymm4
    232b  vaddps ymm5,ymm5,ymm9
    2330  vaddps ymm5,ymm13,ymm5
    2334  vbroadcastss ymm2,[rel 237Bh]
    233d  vmulps ymm5,ymm5,ymm2
    2341  vmovups [rdx+1040h],ymm5
    2349  vaddps ymm6,ymm6,ymm10
    234e  vaddps ymm6,ymm14,ymm6
    2352  vbroadcastss ymm2,[rel 237Bh]
    235b  vmulps ymm6,ymm6,ymm2
    235f  vmovups [rdx+1060h],ymm6
    2367  add rdi,8
    236b  add rdx,40h
    236f  dec rcx
    2372  jmp 0000000000002180h
    2377  vzeroupper
    237a  ret
    237b  add [rax],al
    237d  add [rsi],bh

value_F16_d32_g2:
    2380  push rbx
    2381  push rbp
    2382  push r12
    2384  push r13
    2386  cmp r8,r9
    2389  jge near 00000000000024CDh
    238f  vmovups ymm3,[rdx]
    2393  vmovups ymm4,[rdx+20h]
    2398  vmovups ymm5,[rdx+80h]
    23a0  vmovups ymm6,[rdx+0A0h]
    23a8  imul r13,r8,40h
    23ac  mov rbx,r8
    23af  xor r12,r12
    23b2  xor rbp,rbp
    23b5  mov r10,[rdi+r12*8]
    23b9  add r10,r13
    23bc  xor r13,r13
    23bf  mov r11,[rdi+r12*8+40h]
    23c4  add rbp,10h
    23c8  cmp rbp,r9
    23cb  cmovg rbp,r9
    23cf  prefetcht1 [r11]
    23d3  add r11,40h
    23d7  vcvtph2ps ymm1,[r10]
    23dc  vcvtph2ps ymm2,[r10+10h]
    23e2  vbroadcastss ymm0,[rsi+rbx*4]
    23e8  vfmadd231ps ymm3,ymm1,ymm0
    23ed  vfmadd231ps ymm4,ymm2,ymm0
    23f2  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    23fc  vfmadd231ps ymm5,ymm1,ymm0
    2401  vfmadd231ps ymm6,ymm2,ymm0
    2406  add r10,40h
    240a  inc rbx
    240d  cmp rbx,rbp
    2410  jl short 00000000000023CFh
    2412  inc r12
    2415  cmp r12,rcx
    2418  jl short 00000000000023B5h
    241a  vmovups [rdx],ymm3
    241e  vmovups [rdx+20h],ymm4
    2423  vmovups [rdx+80h],ymm5
    242b  vmovups [rdx+0A0h],ymm6
    2433  vmovups ymm3,[rdx+40h]
    2438  vmovups ymm4,[rdx+60h]
    243d  vmovups ymm5,[rdx+0C0h]
    2445  vmovups ymm6,[rdx+0E0h]
    244d  imul r13,r8,40h
    2451  mov rbx,r8
    2454  xor r12,r12
    2457  xor rbp,rbp
    245a  mov r10,[rdi+r12*8]
    245e  add r10,r13
    2461  xor r13,r13
    2464  add rbp,10h
    2468  cmp rbp,r9
    246b  cmovg rbp,r9
    246f  vcvtph2ps ymm1,[r10+20h]
    2475  vcvtph2ps ymm2,[r10+30h]
    247b  vbroadcastss ymm0,[rsi+rbx*4]
    2481  vfmadd231ps ymm3,ymm1,ymm0
    2486  vfmadd231ps ymm4,ymm2,ymm0
    248b  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    2495  vfmadd231ps ymm5,ymm1,ymm0
    249a  vfmadd231ps ymm6,ymm2,ymm0
    249f  add r10,40h
    24a3  inc rbx
    24a6  cmp rbx,rbp
    24a9  jl short 000000000000246Fh
    24ab  inc r12
    24ae  cmp r12,rcx
    24b1  jl short 000000000000245Ah
    24b3  vmovups [rdx+40h],ymm3
    24b8  vmovups [rdx+60h],ymm4
    24bd  vmovups [rdx+0C0h],ymm5
    24c5  vmovups [rdx+0E0h],ymm6
    24cd  vzeroupper
    24d0  pop r13
    24d2  pop r12
    24d4  pop rbp
    24d5  pop rbx
    24d6  ret

softmax:
    2500  push rbx
    2501  cmp rsi,1
    2505  jl near 000000000000278Eh
    250b  lea r10,[rel 2793h]
    2512  imul rbx,rsi,40h
    2516  mov rax,rdx
    2519  xor r11,r11
    251c  vmovd xmm5,eax
    2520  vpbroadcastd ymm5,xmm5
    2525  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    252e  vmovups ymm6,[rdi+r11]
    2534  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    253e  vmovups [rdi+r11],ymm6
    2544  vpcmpgtd ymm7,ymm5,[r10+200h]
    254d  vmovups ymm6,[rdi+r11+20h]
    2554  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    255e  vmovups [rdi+r11+20h],ymm6
    2565  imul r11,rsi,10h
    2569  mov rax,rcx
    256c  sub rax,r11
    256f  add rax,10h
    2575  mov r11,rbx
    2578  sub r11,40h
    257c  vmovd xmm5,eax
    2580  vpbroadcastd ymm5,xmm5
    2585  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    258e  vmovups ymm6,[r10+1C0h]
    2597  vblendvps ymm6,ymm6,[rdi+r11],ymm7
    259e  vmovups [rdi+r11],ymm6
    25a4  vpcmpgtd ymm7,ymm5,[r10+200h]
    25ad  vmovups ymm6,[r10+1C0h]
    25b6  vblendvps ymm6,ymm6,[rdi+r11+20h],ymm7
    25be  vmovups [rdi+r11+20h],ymm6
    25c5  vmovups ymm0,[r10+1C0h]
    25ce  vmovups ymm1,[r10+1C0h]
    25d7  xor r11,r11
    25da  vmovups ymm4,[rdi+r11]
    25e0  vmaxps ymm0,ymm4,ymm0
    25e4  vmovups ymm4,[rdi+r11+20h]
    25eb  vmaxps ymm1,ymm4,ymm1
    25ef  add r11,40h
    25f3  cmp r11,rbx
    25f6  jl short 00000000000025DAh
    25f8  vmaxps ymm0,ymm1,ymm0
    25fc  vperm2f128 ymm4,ymm0,ymm0,1
    2602  vmaxps ymm0,ymm4,ymm0
    2606  vpshufd ymm4,ymm0,4Eh
    260b  vmaxps ymm0,ymm4,ymm0
    260f  vpshufd ymm4,ymm0,0B1h
    2614  vmaxps ymm0,ymm4,ymm0
    2618  vmovss [r8],xmm0
    261d  vpxor ymm2,ymm2,ymm2
    2621  vpxor ymm3,ymm3,ymm3
    2625  xor r11,r11
    2628  vmovups ymm4,[rdi+r11]
    262e  vsubps ymm4,ymm4,ymm0
    2632  vcmpltps ymm7,ymm4,[r10+0A0h]
    263c  vminps ymm4,ymm4,[r10]
    2641  vmovups ymm5,[r10+20h]
    2647  vfmadd213ps ymm5,ymm4,[r10+40h]
    264d  vsubps ymm6,ymm5,[r10+40h]
    2653  vfmadd231ps ymm4,ymm6,[r10+60h]
    2659  vfmadd231ps ymm4,ymm6,[r10+80h]
    2662  vmovups ymm6,[r10+0C0h]
    266b  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    2674  vfmadd213ps ymm6,ymm4,[r10+100h]
    267d  vfmadd213ps ymm6,ymm4,[r10+120h]
    2686  vfmadd213ps ymm6,ymm4,[r10+140h]
    268f  vfmadd213ps ymm6,ymm4,[r10+160h]
    2698  vfmadd213ps ymm6,ymm4,[r10+180h]
    26a1  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    26aa  vpslld ymm5,ymm5,17h
    26af  vpaddd ymm6,ymm6,ymm5
    26b3  vandnps ymm4,ymm7,ymm6
    26b7  vmovups [rdi+r11],ymm4
    26bd  vaddps ymm2,ymm2,ymm4
    26c1  vmovups ymm4,[rdi+r11+20h]
    26c8  vsubps ymm4,ymm4,ymm0
    26cc  vcmpltps ymm7,ymm4,[r10+0A0h]
    26d6  vminps ymm4,ymm4,[r10]
    26db  vmovups ymm5,[r10+20h]
    26e1  vfmadd213ps ymm5,ymm4,[r10+40h]
    26e7  vsubps ymm6,ymm5,[r10+40h]
    26ed  vfmadd231ps ymm4,ymm6,[r10+60h]
    26f3  vfmadd231ps ymm4,ymm6,[r10+80h]
    26fc  vmovups ymm6,[r10+0C0h]
    2705  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    270e  vfmadd213ps ymm6,ymm4,[r10+100h]
    2717  vfmadd213ps ymm6,ymm4,[r10+120h]
    2720  vfmadd213ps ymm6,ymm4,[r10+140h]
    2729  vfmadd213ps ymm6,ymm4,[r10+160h]
    2732  vfmadd213ps ymm6,ymm4,[r10+180h]
    273b  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    2744  vpslld ymm5,ymm5,17h
    2749  vpaddd ymm6,ymm6,ymm5
    274d  vandnps ymm4,ymm7,ymm6
    2751  vmovups [rdi+r11+20h],ymm4
    2758  vaddps ymm3,ymm3,ymm4
    275c  add r11,40h
    2760  cmp r11,rbx
    2763  jl near 0000000000002628h
    2769  vaddps ymm2,ymm2,ymm3
    276d  vperm2f128 ymm4,ymm2,ymm2,1
    2773  vaddps ymm2,ymm2,ymm4
    2777  vpshufd ymm4,ymm2,4Eh
    277c  vaddps ymm2,ymm2,ymm4
    2780  vpshufd ymm4,ymm2,0B1h
    2785  vaddps ymm2,ymm2,ymm4
    2789  vmovss [r9],xmm2
    278e  vzeroupper
    2791  pop rbx
    2792  ret
    2793  add [rax],al
    2795  mov al,42h
    2797  add [rax],al
    2799  mov al,42h
    279b  add [rax],al
    279d  mov al,42h
    279f  add [rax],al
    27a1  mov al,42h
    27a3  add [rax],al
    27a5  mov al,42h
    27a7  add [rax],al
    27a9  mov al,42h
    27ab  add [rax],al
    27ad  mov al,42h
    27af  add [rax],al
    27b1  mov al,42h
    27b3  cmp ebp,[rdx-55C4C048h]
    27b9  mov eax,0B8AA3B3Fh
    27be  (bad)
    27c0  stosb
    27c1  mov eax,0B8AA3B3Fh
    27c6  (bad)
    27c8  stosb
    27c9  mov eax,0B8AA3B3Fh
    27ce  (bad)
    27d0  stosb
    27d1  mov eax,4000003Fh
    27d6  add [r8],al
    27d9  add [r8],al
    27dd  add [r8],al
    27e1  add [r8],al
    27e5  add [r8],al
    27e9  add [r8],al
    27ed  add [r8],al
    27f1  add [r10+31h],sil
    27f6  mov edi,0BF317200h
    27fb  add [rdx+31h],dh
    27fe  mov edi,0BF317200h
    2803  add [rdx+31h],dh
    2806  mov edi,0BF317200h
    280b  add [rdx+31h],dh
    280e  mov edi,0BF317200h
    2813  (bad)
    2819  mov edi,0BFBE8EB5h
    281e  mov ch,8Eh
    2820  mov esi,0BE8EB5BFh
    2825  mov edi,0BFBE8EB5h
    282a  mov ch,8Eh
    282c  mov esi,0BE8EB5BFh
    2831  mov edi,0AE0000B5h
    2836  ret 0
    2839  scasb
    283a  ret 0
    283d  scasb
    283e  ret 0
    2841  scasb
    2842  ret 0
    2845  scasb
    2846  ret 0
    2849  scasb
    284a  ret 0
    284d  scasb
    284e  ret 0
    2851  scasb
    2852  ret 6967h
    2855  push rax
    2856  cmp [rdi+69h],esp
    2859  push rax
    285a  cmp [rdi+69h],esp
    285d  push rax
    285e  cmp [rdi+69h],esp
    2861  push rax
    2862  cmp [rdi+69h],esp
    2865  push rax
    2866  cmp [rdi+69h],esp
    2869  push rax
    286a  cmp [rdi+69h],esp
    286d  push rax
    286e  cmp [rdi+69h],esp
    2871  push rax
    2872  cmp esi,ecx
    2874  mov r15b,3Ah
    2877  (bad)
    2879  mov bh,3Ah
    287b  (bad)
    287d  mov bh,3Ah
    287f  (bad)
    2881  mov bh,3Ah
    2883  (bad)
    2885  mov bh,3Ah
    2887  (bad)
    2889  mov bh,3Ah
    288b  (bad)
    288d  mov bh,3Ah
    288f  (bad)
    2891  mov bh,3Ah
    2893  or [rcx-76F7C3F8h],cl
    2899  or [rax+rcx],bh
    289c  mov [rax],ecx
    289e  cmp al,8
    28a0  mov [rax],ecx
    28a2  cmp al,8
    28a4  mov [rax],ecx
    28a6  cmp al,8
    28a8  mov [rax],ecx
    28aa  cmp al,8
    28ac  mov [rax],ecx
    28ae  cmp al,8
    28b0  mov [rax],ecx
    28b2  cmp al,0C1h
    28b4  test eax,0A9C13D2Ah
    28b9  sub bh,[rel 3D2AD280h]
    28bf  shr dword [rcx-563EC2D6h],2Ah
    28c6  cmp eax,3D2AA9C1h
    28cb  shr dword [rcx-563EC2D6h],2Ah
    28d2  cmp eax,3E2AAAAAh
    28d7  stosb
    28d8  stosb
    28d9  sub bh,[rsi]
    28db  stosb
    28dc  stosb
    28dd  sub bh,[rsi]
    28df  stosb
    28e0  stosb
    28e1  sub bh,[rsi]
    28e3  stosb
    28e4  stosb
    28e5  sub bh,[rsi]
    28e7  stosb
    28e8  stosb
    28e9  sub bh,[rsi]
    28eb  stosb
    28ec  stosb
    28ed  sub bh,[rsi]
    28ef  stosb
    28f0  stosb
    28f1  sub bh,[rsi]
    28f3  add [rax],al
    28f5  add [rdi],bh
    28f7  add [rax],al
    28f9  add [rdi],bh
    28fb  add [rax],al
    28fd  add [rdi],bh
    28ff  add [rax],al
    2901  add [rdi],bh
    2903  add [rax],al
    2905  add [rdi],bh
    2907  add [rax],al
    2909  add [rdi],bh
    290b  add [rax],al
    290d  add [rdi],bh
    290f  add [rax],al
    2911  add [rdi],bh
    2913  add [rax],al
    2915  cmp byte [rdi],0
    2918  add [rax-7FFFFFC1h],al
    291e  (bad)
    2920  add [rax-7FFFFFC1h],al
    2926  (bad)
    2928  add [rax-7FFFFFC1h],al
    292e  (bad)
    2930  add [rax-7FFFFFC1h],al
    2936  (bad)
    2938  add [rax-7FFFFFC1h],al
    293e  (bad)
    2940  add [rax-7FFFFFC1h],al
    2946  (bad)
    2948  add [rax-7FFFFFC1h],al
    294e  (bad)
    2950  add [rax-7FFFFFC1h],al
    2956  inc dword [rax]
    2958  add [rax-7FFFFF01h],al
    295e  inc dword [rax]
    2960  add [rax-7FFFFF01h],al
    2966  inc dword [rax]
    2968  add [rax-7FFFFF01h],al
    296e  inc dword [rax]
    2970  add [rax+0FFh],al
    2976  add [rcx],al
    2978  add [rax],al
    297a  add [rdx],al
    297c  add [rax],al
    297e  add [rbx],al
    2980  add [rax],al
    2982  add [rax+rax],al
    2985  add [rax],al
    2987  add eax,6000000h
    298c  add [rax],al
    298e  add [rdi],al
    2990  add [rax],al
    2992  add [rax],cl
    2994  add [rax],al
    2996  add [rcx],cl
    2998  add [rax],al
    299a  add [rdx],cl
    299c  add [rax],al
    299e  add [rbx],cl
    29a0  add [rax],al
    29a2  add [rax+rax],cl
    29a5  add [rax],al
    29a7  or eax,0E000000h
    29ac  add [rax],al
    29ae  add [rdi],cl
    29b0  add [rax],al
    29b2  (bad)

combine_d32_g1_sinks:
    29c0  push rbx
    29c1  push rbp
    29c2  lea rbp,[rel 2B95h]
    29c9  vbroadcastss ymm0,[rcx]
    29ce  mov r10,r9
    29d1  xor rbx,rbx
    29d4  cmp r10,1
    29d8  jl short 00000000000029EDh
    29da  vbroadcastss ymm2,[rsi+rbx]
    29e0  vmaxps ymm0,ymm2,ymm0
    29e4  add rbx,4
    29e8  dec r10
    29eb  jmp short 00000000000029D4h
    29ed  vpxor ymm4,ymm4,ymm4
    29f1  vpxor ymm5,ymm5,ymm5
    29f5  vpxor ymm6,ymm6,ymm6
    29f9  vpxor ymm7,ymm7,ymm7
    29fd  vpxor ymm1,ymm1,ymm1
    2a01  mov r10,r9
    2a04  mov r11,rdi
    2a07  xor rbx,rbx
    2a0a  cmp r10,1
    2a0e  jl near 0000000000002AD7h
    2a14  vbroadcastss ymm2,[rsi+rbx]
    2a1a  vsubps ymm2,ymm2,ymm0
    2a1e  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2a27  vminps ymm2,ymm2,[rbp]
    2a2c  vmovups ymm12,[rbp+20h]
    2a31  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2a37  vsubps ymm13,ymm12,[rbp+40h]
    2a3c  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2a42  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2a4b  vmovups ymm13,[rbp+0C0h]
    2a53  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2a5c  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2a65  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2a6e  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2a77  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2a80  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2a89  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2a92  vpslld ymm12,ymm12,17h
    2a98  vpaddd ymm13,ymm13,ymm12
    2a9d  vandnps ymm2,ymm14,ymm13
    2aa2  vbroadcastss ymm3,[rdx+rbx]
    2aa8  vfmadd231ps ymm1,ymm2,ymm3
    2aad  vfmadd231ps ymm4,ymm2,[r11]
    2ab2  vfmadd231ps ymm5,ymm2,[r11+20h]
    2ab8  vfmadd231ps ymm6,ymm2,[r11+40h]
    2abe  vfmadd231ps ymm7,ymm2,[r11+60h]
    2ac4  add rbx,4
    2ac8  add r11,80h
    2acf  dec r10
    2ad2  jmp 0000000000002A0Ah
    2ad7  vbroadcastss ymm2,[rcx]
    2adc  vsubps ymm2,ymm2,ymm0
    2ae0  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2ae9  vminps ymm2,ymm2,[rbp]
    2aee  vmovups ymm12,[rbp+20h]
    2af3  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2af9  vsubps ymm13,ymm12,[rbp+40h]
    2afe  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2b04  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2b0d  vmovups ymm13,[rbp+0C0h]
    2b15  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2b1e  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2b27  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2b30  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2b39  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2b42  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2b4b  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2b54  vpslld ymm12,ymm12,17h
    2b5a  vpaddd ymm13,ymm13,ymm12
    2b5f  vandnps ymm2,ymm14,ymm13
    2b64  vaddps ymm1,ymm1,ymm2
    2b68  vdivps ymm4,ymm4,ymm1
    2b6c  vmovups [r8],ymm4
    2b71  vdivps ymm5,ymm5,ymm1
    2b75  vmovups [r8+20h],ymm5
    2b7b  vdivps ymm6,ymm6,ymm1
    2b7f  vmovups [r8+40h],ymm6
    2b85  vdivps ymm7,ymm7,ymm1
    2b89  vmovups [r8+60h],ymm7
    2b8f  vzeroupper
    2b92  pop rbp
    2b93  pop rbx
    2b94  ret
    2b95  add [rax],al
    2b97  mov al,42h
    2b99  add [rax],al
    2b9b  mov al,42h
    2b9d  add [rax],al
    2b9f  mov al,42h
    2ba1  add [rax],al
    2ba3  mov al,42h
    2ba5  add [rax],al
    2ba7  mov al,42h
    2ba9  add [rax],al
    2bab  mov al,42h
    2bad  add [rax],al
    2baf  mov al,42h
    2bb1  add [rax],al
    2bb3  mov al,42h
    2bb5  cmp ebp,[rdx-55C4C048h]
    2bbb  mov eax,0B8AA3B3Fh
    2bc0  (bad)
    2bc2  stosb
    2bc3  mov eax,0B8AA3B3Fh
    2bc8  (bad)
    2bca  stosb
    2bcb  mov eax,0B8AA3B3Fh
    2bd0  (bad)
    2bd2  stosb
    2bd3  mov eax,4000003Fh
    2bd8  add [r8],al
    2bdb  add [r8],al
    2bdf  add [r8],al
    2be3  add [r8],al
    2be7  add [r8],al
    2beb  add [r8],al
    2bef  add [r8],al
    2bf3  add [r10+31h],sil
    2bf8  mov edi,0BF317200h
    2bfd  add [rdx+31h],dh
    2c00  mov edi,0BF317200h
    2c05  add [rdx+31h],dh
    2c08  mov edi,0BF317200h
    2c0d  add [rdx+31h],dh
    2c10  mov edi,0BF317200h
    2c15  (bad)
    2c1b  mov edi,0BFBE8EB5h
    2c20  mov ch,8Eh
    2c22  mov esi,0BE8EB5BFh
    2c27  mov edi,0BFBE8EB5h
    2c2c  mov ch,8Eh
    2c2e  mov esi,0BE8EB5BFh
    2c33  mov edi,0AE0000B5h
    2c38  ret 0
    2c3b  scasb
    2c3c  ret 0
    2c3f  scasb
    2c40  ret 0
    2c43  scasb
    2c44  ret 0
    2c47  scasb
    2c48  ret 0
    2c4b  scasb
    2c4c  ret 0
    2c4f  scasb
    2c50  ret 0
    2c53  scasb
    2c54  ret 6967h
    2c57  push rax
    2c58  cmp [rdi+69h],esp
    2c5b  push rax
    2c5c  cmp [rdi+69h],esp
    2c5f  push rax
    2c60  cmp [rdi+69h],esp
    2c63  push rax
    2c64  cmp [rdi+69h],esp
    2c67  push rax
    2c68  cmp [rdi+69h],esp
    2c6b  push rax
    2c6c  cmp [rdi+69h],esp
    2c6f  push rax
    2c70  cmp [rdi+69h],esp
    2c73  push rax
    2c74  cmp esi,ecx
    2c76  mov r15b,3Ah
    2c79  (bad)
    2c7b  mov bh,3Ah
    2c7d  (bad)
    2c7f  mov bh,3Ah
    2c81  (bad)
    2c83  mov bh,3Ah
    2c85  (bad)
    2c87  mov bh,3Ah
    2c89  (bad)
    2c8b  mov bh,3Ah
    2c8d  (bad)
    2c8f  mov bh,3Ah
    2c91  (bad)
    2c93  mov bh,3Ah
    2c95  or [rcx-76F7C3F8h],cl
    2c9b  or [rax+rcx],bh
    2c9e  mov [rax],ecx
    2ca0  cmp al,8
    2ca2  mov [rax],ecx
    2ca4  cmp al,8
    2ca6  mov [rax],ecx
    2ca8  cmp al,8
    2caa  mov [rax],ecx
    2cac  cmp al,8
    2cae  mov [rax],ecx
    2cb0  cmp al,8
    2cb2  mov [rax],ecx
    2cb4  cmp al,0C1h
    2cb6  test eax,0A9C13D2Ah
    2cbb  sub bh,[rel 3D2AD682h]
    2cc1  shr dword [rcx-563EC2D6h],2Ah
    2cc8  cmp eax,3D2AA9C1h
    2ccd  shr dword [rcx-563EC2D6h],2Ah
    2cd4  cmp eax,3E2AAAAAh
    2cd9  stosb
    2cda  stosb
    2cdb  sub bh,[rsi]
    2cdd  stosb
    2cde  stosb
    2cdf  sub bh,[rsi]
    2ce1  stosb
    2ce2  stosb
    2ce3  sub bh,[rsi]
    2ce5  stosb
    2ce6  stosb
    2ce7  sub bh,[rsi]
    2ce9  stosb
    2cea  stosb
    2ceb  sub bh,[rsi]
    2ced  stosb
    2cee  stosb
    2cef  sub bh,[rsi]
    2cf1  stosb
    2cf2  stosb
    2cf3  sub bh,[rsi]
    2cf5  add [rax],al
    2cf7  add [rdi],bh
    2cf9  add [rax],al
    2cfb  add [rdi],bh
    2cfd  add [rax],al
    2cff  add [rdi],bh
    2d01  add [rax],al
    2d03  add [rdi],bh
    2d05  add [rax],al
    2d07  add [rdi],bh
    2d09  add [rax],al
    2d0b  add [rdi],bh
    2d0d  add [rax],al
    2d0f  add [rdi],bh
    2d11  add [rax],al
    2d13  add [rdi],bh
    2d15  add [rax],al
    2d17  cmp byte [rdi],0
    2d1a  add [rax-7FFFFFC1h],al
    2d20  (bad)
    2d22  add [rax-7FFFFFC1h],al
    2d28  (bad)
    2d2a  add [rax-7FFFFFC1h],al
    2d30  (bad)
    2d32  add [rax-7FFFFFC1h],al
    2d38  (bad)
    2d3a  add [rax-7FFFFFC1h],al
    2d40  (bad)
    2d42  add [rax-7FFFFFC1h],al
    2d48  (bad)
    2d4a  add [rax-7FFFFFC1h],al
    2d50  (bad)
    2d52  add [rax-7FFFFFC1h],al
    2d58  inc dword [rax]
    2d5a  add [rax-7FFFFF01h],al
    2d60  inc dword [rax]
    2d62  add [rax-7FFFFF01h],al
    2d68  inc dword [rax]
    2d6a  add [rax-7FFFFF01h],al
    2d70  inc dword [rax]
    2d72  add [rax+0FFh],al
    2d78  add [rcx],al
    2d7a  add [rax],al
    2d7c  add [rdx],al
    2d7e  add [rax],al
    2d80  add [rbx],al
    2d82  add [rax],al
    2d84  add [rax+rax],al
    2d87  add [rax],al
    2d89  add eax,6000000h
    2d8e  add [rax],al
    2d90  add [rdi],al
    2d92  add [rax],al
    2d94  add [rax],cl
    2d96  add [rax],al
    2d98  add [rcx],cl
    2d9a  add [rax],al
    2d9c  add [rdx],cl
    2d9e  add [rax],al
    2da0  add [rbx],cl
    2da2  add [rax],al
    2da4  add [rax+rax],cl
    2da7  add [rax],al
    2da9  or eax,0E000000h
    2dae  add [rax],al
    2db0  add [rdi],cl
    2db2  add [rax],al
    2db4  (bad)

map_n32_1e3898d682e799f0:
    2dc0  lea rax,[rel 3091h]
    2dc7  vbroadcastss ymm13,[rax]
    2dcc  vbroadcastss ymm12,[rax+20h]
    2dd2  vbroadcastss ymm11,[rax+40h]
    2dd8  vbroadcastss ymm10,[rax+60h]
    2dde  vbroadcastss ymm9,[rax+80h]
    2de7  vbroadcastss ymm8,[rax+0A0h]
    2df0  vbroadcastss ymm7,[rax+0C0h]
    2df9  vbroadcastss ymm15,[rax+0E0h]
    2e02  vbroadcastss ymm6,[rax+100h]
    2e0b  vbroadcastss ymm5,[rax+120h]
    2e14  vbroadcastss ymm14,[rax+140h]
    2e1d  test rcx,rcx
    2e20  je near 000000000000308Dh
    2e26  vmovups ymm0,[rsi]
    2e2a  vminps ymm0,ymm0,ymm5
    2e2e  vsubps ymm1,ymm13,ymm0
    2e32  vminps ymm2,ymm1,[rax+160h]
    2e3a  vmovups ymm3,ymm14
    2e3f  vfmadd231ps ymm3,ymm2,ymm6
    2e44  vsubps ymm4,ymm3,ymm14
    2e49  vfmadd231ps ymm2,ymm4,[rax+180h]
    2e52  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    2e5b  vmovups ymm4,ymm11
    2e60  vfmadd231ps ymm4,ymm12,ymm2
    2e65  vfmadd213ps ymm4,ymm2,ymm10
    2e6a  vfmadd213ps ymm4,ymm2,ymm9
    2e6f  vfmadd213ps ymm4,ymm2,ymm8
    2e74  vfmadd213ps ymm4,ymm2,ymm7
    2e79  vfmadd213ps ymm4,ymm2,ymm15
    2e7e  vfmadd213ps ymm4,ymm2,ymm15
    2e83  vpslld ymm2,ymm3,17h
    2e88  vpaddd ymm2,ymm2,ymm4
    2e8c  vcmpnltps ymm3,ymm1,[rax+1C0h]
    2e95  vpand ymm3,ymm3,ymm2
    2e99  vaddps ymm1,ymm15,ymm3
    2e9d  vdivps ymm1,ymm15,ymm1
    2ea1  vmulps ymm0,ymm0,ymm1
    2ea5  vmovups ymm1,[rdx]
    2ea9  vaddps ymm1,ymm1,ymm15
    2eae  vmulps ymm0,ymm0,ymm1
    2eb2  vmovups [rdi],ymm0
    2eb6  vmovups ymm0,[rsi+20h]
    2ebb  vminps ymm0,ymm0,ymm5
    2ebf  vsubps ymm1,ymm13,ymm0
    2ec3  vminps ymm2,ymm1,[rax+160h]
    2ecb  vmovups ymm3,ymm14
    2ed0  vfmadd231ps ymm3,ymm2,ymm6
    2ed5  vsubps ymm4,ymm3,ymm14
    2eda  vfmadd231ps ymm2,ymm4,[rax+180h]
    2ee3  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    2eec  vmovups ymm4,ymm11
    2ef1  vfmadd231ps ymm4,ymm12,ymm2
    2ef6  vfmadd213ps ymm4,ymm2,ymm10
    2efb  vfmadd213ps ymm4,ymm2,ymm9
    2f00  vfmadd213ps ymm4,ymm2,ymm8
    2f05  vfmadd213ps ymm4,ymm2,ymm7
    2f0a  vfmadd213ps ymm4,ymm2,ymm15
    2f0f  vfmadd213ps ymm4,ymm2,ymm15
    2f14  vpslld ymm2,ymm3,17h
    2f19  vpaddd ymm2,ymm2,ymm4
    2f1d  vcmpnltps ymm3,ymm1,[rax+1C0h]
    2f26  vpand ymm3,ymm3,ymm2
    2f2a  vaddps ymm1,ymm15,ymm3
    2f2e  vdivps ymm1,ymm15,ymm1
    2f32  vmulps ymm0,ymm0,ymm1
    2f36  vmovups ymm1,[rdx+20h]
    2f3b  vaddps ymm1,ymm1,ymm15
    2f40  vmulps ymm0,ymm0,ymm1
    2f44  vmovups [rdi+20h],ymm0
    2f49  vmovups ymm0,[rsi+40h]
    2f4e  vminps ymm0,ymm0,ymm5
    2f52  vsubps ymm1,ymm13,ymm0
    2f56  vminps ymm2,ymm1,[rax+160h]
    2f5e  vmovups ymm3,ymm14
    2f63  vfmadd231ps ymm3,ymm2,ymm6
    2f68  vsubps ymm4,ymm3,ymm14
    2f6d  vfmadd231ps ymm2,ymm4,[rax+180h]
    2f76  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    2f7f  vmovups ymm4,ymm11
    2f84  vfmadd231ps ymm4,ymm12,ymm2
    2f89  vfmadd213ps ymm4,ymm2,ymm10
    2f8e  vfmadd213ps ymm4,ymm2,ymm9
    2f93  vfmadd213ps ymm4,ymm2,ymm8
    2f98  vfmadd213ps ymm4,ymm2,ymm7
    2f9d  vfmadd213ps ymm4,ymm2,ymm15
    2fa2  vfmadd213ps ymm4,ymm2,ymm15
    2fa7  vpslld ymm2,ymm3,17h
    2fac  vpaddd ymm2,ymm2,ymm4
    2fb0  vcmpnltps ymm3,ymm1,[rax+1C0h]
    2fb9  vpand ymm3,ymm3,ymm2
    2fbd  vaddps ymm1,ymm15,ymm3
    2fc1  vdivps ymm1,ymm15,ymm1
    2fc5  vmulps ymm0,ymm0,ymm1
    2fc9  vmovups ymm1,[rdx+40h]
    2fce  vaddps ymm1,ymm1,ymm15
    2fd3  vmulps ymm0,ymm0,ymm1
    2fd7  vmovups [rdi+40h],ymm0
    2fdc  vmovups ymm0,[rsi+60h]
    2fe1  vminps ymm0,ymm0,ymm5
    2fe5  vsubps ymm1,ymm13,ymm0
    2fe9  vminps ymm2,ymm1,[rax+160h]
    2ff1  vmovups ymm3,ymm14
    2ff6  vfmadd231ps ymm3,ymm2,ymm6
    2ffb  vsubps ymm4,ymm3,ymm14
    3000  vfmadd231ps ymm2,ymm4,[rax+180h]
    3009  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    3012  vmovups ymm4,ymm11
    3017  vfmadd231ps ymm4,ymm12,ymm2
    301c  vfmadd213ps ymm4,ymm2,ymm10
    3021  vfmadd213ps ymm4,ymm2,ymm9
    3026  vfmadd213ps ymm4,ymm2,ymm8
    302b  vfmadd213ps ymm4,ymm2,ymm7
    3030  vfmadd213ps ymm4,ymm2,ymm15
    3035  vfmadd213ps ymm4,ymm2,ymm15
    303a  vpslld ymm2,ymm3,17h
    303f  vpaddd ymm2,ymm2,ymm4
    3043  vcmpnltps ymm3,ymm1,[rax+1C0h]
    304c  vpand ymm3,ymm3,ymm2
    3050  vaddps ymm1,ymm15,ymm3
    3054  vdivps ymm1,ymm15,ymm1
    3058  vmulps ymm0,ymm0,ymm1
    305c  vmovups ymm1,[rdx+60h]
    3061  vaddps ymm1,ymm1,ymm15
    3066  vmulps ymm0,ymm0,ymm1
    306a  vmovups [rdi+60h],ymm0
    306f  add rdi,100h
    3076  add rsi,100h
    307d  add rdx,100h
    3084  dec rcx
    3087  jne near 0000000000002E26h
    308d  vzeroupper
    3090  ret
    3091  add [rax],al
    3093  add [rax],al
    3095  add [rax],al
    3097  add [rax],al
    3099  add [rax],al
    309b  add [rax],al
    309d  add [rax],al
    309f  add [rax],al
    30a1  add [rax],al
    30a3  add [rax],al
    30a5  add [rax],al
    30a7  add [rax],al
    30a9  add [rax],al
    30ab  add [rax],al
    30ad  add [rax],al
    30af  add [rax],al
    30b1  imul edx,[eax+39h],39506967h
    30b9  imul edx,[eax+39h],39506967h
    30c1  imul edx,[eax+39h],39506967h
    30c9  imul edx,[eax+39h],39506967h
    30d1  (bad)
    30d3  mov bh,3Ah
    30d5  (bad)
    30d7  mov bh,3Ah
    30d9  (bad)
    30db  mov bh,3Ah
    30dd  (bad)
    30df  mov bh,3Ah
    30e1  (bad)
    30e3  mov bh,3Ah
    30e5  (bad)
    30e7  mov bh,3Ah
    30e9  (bad)
    30eb  mov bh,3Ah
    30ed  (bad)
    30ef  mov bh,3Ah
    30f1  or [rcx-76F7C3F8h],cl
    30f7  or [rax+rcx],bh
    30fa  mov [rax],ecx
    30fc  cmp al,8
    30fe  mov [rax],ecx
    3100  cmp al,8
    3102  mov [rax],ecx
    3104  cmp al,8
    3106  mov [rax],ecx
    3108  cmp al,8
    310a  mov [rax],ecx
    310c  cmp al,8
    310e  mov [rax],ecx
    3110  cmp al,0C1h
    3112  test eax,0A9C13D2Ah
    3117  sub bh,[rel 3D2ADADEh]
    311d  shr dword [rcx-563EC2D6h],2Ah
    3124  cmp eax,3D2AA9C1h
    3129  shr dword [rcx-563EC2D6h],2Ah
    3130  cmp eax,3E2AAAAAh
    3135  stosb
    3136  stosb
    3137  sub bh,[rsi]
    3139  stosb
    313a  stosb
    313b  sub bh,[rsi]
    313d  stosb
    313e  stosb
    313f  sub bh,[rsi]
    3141  stosb
    3142  stosb
    3143  sub bh,[rsi]
    3145  stosb
    3146  stosb
    3147  sub bh,[rsi]
    3149  stosb
    314a  stosb
    314b  sub bh,[rsi]
    314d  stosb
    314e  stosb
    314f  sub bh,[rsi]
    3151  add [rax],al
    3153  add [rdi],bh
    3155  add [rax],al
    3157  add [rdi],bh
    3159  add [rax],al
    315b  add [rdi],bh
    315d  add [rax],al
    315f  add [rdi],bh
    3161  add [rax],al
    3163  add [rdi],bh
    3165  add [rax],al
    3167  add [rdi],bh
    3169  add [rax],al
    316b  add [rdi],bh
    316d  add [rax],al
    316f  add [rdi],bh
    3171  add [rax],al
    3173  cmp byte [rdi],0
    3176  add [rax-7FFFFFC1h],al
    317c  (bad)
    317e  add [rax-7FFFFFC1h],al
    3184  (bad)
    3186  add [rax-7FFFFFC1h],al
    318c  (bad)
    318e  add [rax-4755C4C1h],al
    3194  (bad)
    3196  stosb
    3197  mov eax,0B8AA3B3Fh
    319c  (bad)
    319e  stosb
    319f  mov eax,0B8AA3B3Fh
    31a4  (bad)
    31a6  stosb
    31a7  mov eax,0B8AA3B3Fh
    31ac  (bad)
    31ae  stosb
    31af  mov eax,0E000003Fh
    31b4  add [rax],al
    31b7  loopne 00000000000031F9h
    31b9  add [rax],al
    31bb  loopne 00000000000031FDh
    31bd  add [rax],al
    31bf  loopne 0000000000003201h
    31c1  add [rax],al
    31c3  loopne 0000000000003205h
    31c5  add [rax],al
    31c7  loopne 0000000000003209h
    31c9  add [rax],al
    31cb  loopne 000000000000320Dh
    31cd  add [rax],al
    31cf  loopne 0000000000003211h
    31d1  add [rax],al
    31d3  add [r8],al
    31d7  add [r8],al
    31db  add [r8],al
    31df  add [r8],al
    31e3  add [r8],al
    31e7  add [r8],al
    31eb  add [r8],al
    31ef  add [r8],al
    31f3  mov al,42h
    31f5  add [rax],al
    31f7  mov al,42h
    31f9  add [rax],al
    31fb  mov al,42h
    31fd  add [rax],al
    31ff  mov al,42h
    3201  add [rax],al
    3203  mov al,42h
    3205  add [rax],al
    3207  mov al,42h
    3209  add [rax],al
    320b  mov al,42h
    320d  add [rax],al
    320f  mov al,42h
    3211  add [rdx+31h],dh
    3214  mov edi,0BF317200h
    3219  add [rdx+31h],dh
    321c  mov edi,0BF317200h
    3221  add [rdx+31h],dh
    3224  mov edi,0BF317200h
    3229  add [rdx+31h],dh
    322c  mov edi,0BF317200h
    3231  (bad)
    3237  mov edi,0BFBE8EB5h
    323c  mov ch,8Eh
    323e  mov esi,0BE8EB5BFh
    3243  mov edi,0BFBE8EB5h
    3248  mov ch,8Eh
    324a  mov esi,0BE8EB5BFh
    324f  mov edi,0AE0000B5h
    3254  ret 0
    3257  scasb
    3258  ret 0
    325b  scasb
    325c  ret 0
    325f  scasb
    3260  ret 0
    3263  scasb
    3264  ret 0
    3267  scasb
    3268  ret 0
    326b  scasb
    326c  ret 0
    326f  scasb
    3270  (bad)

quantize_q8:
    3280  lea rax,[rel 33E9h]
    3287  vpxor ymm15,ymm15,ymm15
    328c  vpbroadcastd ymm14,[rax+4]
    3292  vpbroadcastd ymm13,[rax]
    3297  vpbroadcastd ymm12,[rax+8]
    329d  vpbroadcastd ymm11,[rax+0Ch]
    32a3  vpbroadcastd ymm10,[rax+10h]
    32a9  vmovdqu ymm9,[rax+14h]
    32ae  test r8,r8
    32b1  je near 00000000000033E5h
    32b7  vmovups ymm0,[rdi]
    32bb  vpand ymm4,ymm0,ymm13
    32c0  vmovups ymm1,[rdi+20h]
    32c5  vpand ymm5,ymm1,ymm13
    32ca  vpmaxsd ymm4,ymm4,ymm5
    32cf  vmovups ymm2,[rdi+40h]
    32d4  vpand ymm5,ymm2,ymm13
    32d9  vpmaxsd ymm4,ymm4,ymm5
    32de  vmovups ymm3,[rdi+60h]
    32e3  vpand ymm5,ymm3,ymm13
    32e8  vpmaxsd ymm4,ymm4,ymm5
    32ed  vextracti128 xmm5,ymm4,1
    32f3  vpmaxsd xmm4,xmm4,xmm5
    32f8  vpshufd xmm5,xmm4,4Eh
    32fd  vpmaxsd xmm4,xmm4,xmm5
    3302  vpshufd xmm5,xmm4,0B1h
    3307  vpmaxsd xmm4,xmm4,xmm5
    330c  vdivss xmm5,xmm4,xmm14
    3311  vmovss [rdx],xmm5
    3315  vcmpneqps xmm5,xmm4,xmm15
    331b  vdivps xmm4,xmm14,xmm4
    331f  vandps xmm4,xmm4,xmm5
    3323  vbroadcastss ymm4,xmm4
    3328  vmulps ymm0,ymm0,ymm4
    332c  vaddps ymm0,ymm0,ymm12
    3331  vpsubd ymm0,ymm0,ymm12
    3336  vpmaxsd ymm0,ymm0,ymm11
    333b  vpminsd ymm0,ymm0,ymm10
    3340  vmulps ymm1,ymm1,ymm4
    3344  vaddps ymm1,ymm1,ymm12
    3349  vpsubd ymm1,ymm1,ymm12
    334e  vpmaxsd ymm1,ymm1,ymm11
    3353  vpminsd ymm1,ymm1,ymm10
    3358  vmulps ymm2,ymm2,ymm4
    335c  vaddps ymm2,ymm2,ymm12
    3361  vpsubd ymm2,ymm2,ymm12
    3366  vpmaxsd ymm2,ymm2,ymm11
    336b  vpminsd ymm2,ymm2,ymm10
    3370  vmulps ymm3,ymm3,ymm4
    3374  vaddps ymm3,ymm3,ymm12
    3379  vpsubd ymm3,ymm3,ymm12
    337e  vpmaxsd ymm3,ymm3,ymm11
    3383  vpminsd ymm3,ymm3,ymm10
    3388  vpaddd ymm4,ymm0,ymm1
    338c  vpaddd ymm5,ymm2,ymm3
    3390  vpaddd ymm4,ymm4,ymm5
    3394  vpackssdw ymm0,ymm0,ymm1
    3398  vpackssdw ymm2,ymm2,ymm3
    339c  vpacksswb ymm0,ymm0,ymm2
    33a0  vpermd ymm0,ymm9,ymm0
    33a5  vmovdqu [rsi],ymm0
    33a9  vextracti128 xmm5,ymm4,1
    33af  vpaddd xmm4,xmm4,xmm5
    33b3  vpshufd xmm5,xmm4,4Eh
    33b8  vpaddd xmm4,xmm4,xmm5
    33bc  vpshufd xmm5,xmm4,0B1h
    33c1  vpaddd xmm4,xmm4,xmm5
    33c5  vmovd [rcx],xmm4
    33c9  add rdi,80h
    33d0  add rsi,20h
    33d4  add rdx,4
    33d8  add rcx,4
    33dc  dec r8
    33df  jne near 00000000000032B7h
    33e5  vzeroupper
    33e8  ret
    33e9  (bad)
    33eb  (bad)
    33ed  add [rax],al
    33ef  inc byte [rdx]
    33f2  add [rax+4Bh],al
    33f5  cmp bh,0FFh
    33f8  (bad)
    33fa  add [rax],al
    33fc  add [rax],al
    33fe  add [rax],al
    3400  add [rax+rax],al
    3403  add [rax],al
    3405  add [rax],eax
    3407  add [rax],al
    3409  add eax,2000000h
    340e  add [rax],al
    3410  add [rsi],al
    3412  add [rax],al
    3414  add [rbx],al
    3416  add [rax],al
    3418  add [rdi],al
    341a  add [rax],al
    341c  (bad)

dot_adjacent_mxfp4_q8_k64_t1_pairs:
    3440  push rcx
    3441  push rdx
    3442  mov rax,rsi
    3445  mov r9,[rax]
    3448  lea r10,[rel 3F53h]
    344f  vpbroadcastd ymm0,[r10]
    3454  vbroadcasti128 ymm1,[r10+18h]
    345a  sub rsp,180h
    3461  vpbroadcastd ymm6,[r10+8]
    3467  vmovdqu [rsp+120h],ymm6
    3470  vpbroadcastd ymm6,[r10+0Ch]
    3476  vmovdqu [rsp+140h],ymm6
    347f  vpbroadcastd ymm6,[r10+10h]
    3485  vmovdqu [rsp+160h],ymm6
    348e  vpxor ymm7,ymm7,ymm7
    3492  vmovups [rsp],ymm7
    3497  vmovups [rsp+20h],ymm7
    349d  vmovups [rsp+40h],ymm7
    34a3  vmovups [rsp+60h],ymm7
    34a9  vmovups [rsp+80h],ymm7
    34b2  vmovups [rsp+0A0h],ymm7
    34bb  vmovups [rsp+0C0h],ymm7
    34c4  vmovups [rsp+0E0h],ymm7
    34cd  lea rsi,[rdi+40h]
    34d1  lea rdx,[rsi+200h]
    34d8  lea rcx,[rdi+900h]
    34df  xor r8,r8
    34e2  cmp r8,0
    34e6  jne short 00000000000034EFh
    34e8  lea rdx,[rsi+900h]
    34ef  test r8,0Ch
    34f6  jne short 0000000000003514h
    34f8  prefetcht1 [rcx]
    34fb  prefetcht1 [rcx+240h]
    3502  prefetcht1 [rcx+480h]
    3509  prefetcht1 [rcx+6C0h]
    3510  add rcx,40h
    3514  vpbroadcastd ymm3,[r10+14h]
    351a  vpbroadcastd ymm2,[r9+r8+48h]
    3521  vpmulld ymm2,ymm2,ymm3
    3526  vmovdqu [rsp+100h],ymm2
    352f  vpbroadcastd ymm4,[r9+r8*8]
    3535  vpbroadcastd ymm5,[r9+r8*8+4]
    353c  prefetcht1 [rdx]
    353f  vmovdqu ymm2,[rsi]
    3543  vpsrlw ymm3,ymm2,4
    3548  vpand ymm2,ymm2,ymm0
    354c  vpand ymm3,ymm3,ymm0
    3550  vpshufb ymm2,ymm1,ymm2
    3555  vpshufb ymm3,ymm1,ymm3
    355a  vpmaddubsw ymm10,ymm2,ymm4
    355f  vpmaddubsw ymm3,ymm3,ymm5
    3564  vpaddw ymm10,ymm10,ymm3
    3568  vmovdqu ymm2,[rsi+20h]
    356d  vpsrlw ymm3,ymm2,4
    3572  vpand ymm2,ymm2,ymm0
    3576  vpand ymm3,ymm3,ymm0
    357a  vpshufb ymm2,ymm1,ymm2
    357f  vpshufb ymm3,ymm1,ymm3
    3584  vpmaddubsw ymm11,ymm2,ymm4
    3589  vpmaddubsw ymm3,ymm3,ymm5
    358e  vpaddw ymm11,ymm11,ymm3
    3592  prefetcht1 [rdx+240h]
    3599  vmovdqu ymm2,[rsi+240h]
    35a1  vpsrlw ymm3,ymm2,4
    35a6  vpand ymm2,ymm2,ymm0
    35aa  vpand ymm3,ymm3,ymm0
    35ae  vpshufb ymm2,ymm1,ymm2
    35b3  vpshufb ymm3,ymm1,ymm3
    35b8  vpmaddubsw ymm12,ymm2,ymm4
    35bd  vpmaddubsw ymm3,ymm3,ymm5
    35c2  vpaddw ymm12,ymm12,ymm3
    35c6  vmovdqu ymm2,[rsi+260h]
    35ce  vpsrlw ymm3,ymm2,4
    35d3  vpand ymm2,ymm2,ymm0
    35d7  vpand ymm3,ymm3,ymm0
    35db  vpshufb ymm2,ymm1,ymm2
    35e0  vpshufb ymm3,ymm1,ymm3
    35e5  vpmaddubsw ymm13,ymm2,ymm4
    35ea  vpmaddubsw ymm3,ymm3,ymm5
    35ef  vpaddw ymm13,ymm13,ymm3
    35f3  vpbroadcastd ymm4,[r9+r8*8+8]
    35fa  vpbroadcastd ymm5,[r9+r8*8+0Ch]
    3601  prefetcht1 [rdx+480h]
    3608  vmovdqu ymm2,[rsi+40h]
    360d  vpsrlw ymm3,ymm2,4
    3612  vpand ymm2,ymm2,ymm0
    3616  vpand ymm3,ymm3,ymm0
    361a  vpshufb ymm2,ymm1,ymm2
    361f  vpshufb ymm3,ymm1,ymm3
    3624  vpmaddubsw ymm2,ymm2,ymm4
    3629  vpmaddubsw ymm3,ymm3,ymm5
    362e  vpaddw ymm10,ymm10,ymm2
    3632  vpaddw ymm10,ymm10,ymm3
    3636  vpmaddwd ymm6,ymm10,[rsp+120h]
    363f  vpaddd ymm6,ymm6,[rsp+100h]
    3648  vmovdqu ymm2,[rsi+60h]
    364d  vpsrlw ymm3,ymm2,4
    3652  vpand ymm2,ymm2,ymm0
    3656  vpand ymm3,ymm3,ymm0
    365a  vpshufb ymm2,ymm1,ymm2
    365f  vpshufb ymm3,ymm1,ymm3
    3664  vpmaddubsw ymm2,ymm2,ymm4
    3669  vpmaddubsw ymm3,ymm3,ymm5
    366e  vpaddw ymm11,ymm11,ymm2
    3672  vpaddw ymm11,ymm11,ymm3
    3676  vpmaddwd ymm7,ymm11,[rsp+120h]
    367f  vpaddd ymm7,ymm7,[rsp+100h]
    3688  prefetcht1 [rdx+6C0h]
    368f  vmovdqu ymm2,[rsi+280h]
    3697  vpsrlw ymm3,ymm2,4
    369c  vpand ymm2,ymm2,ymm0
    36a0  vpand ymm3,ymm3,ymm0
    36a4  vpshufb ymm2,ymm1,ymm2
    36a9  vpshufb ymm3,ymm1,ymm3
    36ae  vpmaddubsw ymm2,ymm2,ymm4
    36b3  vpmaddubsw ymm3,ymm3,ymm5
    36b8  vpaddw ymm12,ymm12,ymm2
    36bc  vpaddw ymm12,ymm12,ymm3
    36c0  vpmaddwd ymm8,ymm12,[rsp+120h]
    36c9  vpaddd ymm8,ymm8,[rsp+100h]
    36d2  vmovdqu ymm2,[rsi+2A0h]
    36da  vpsrlw ymm3,ymm2,4
    36df  vpand ymm2,ymm2,ymm0
    36e3  vpand ymm3,ymm3,ymm0
    36e7  vpshufb ymm2,ymm1,ymm2
    36ec  vpshufb ymm3,ymm1,ymm3
    36f1  vpmaddubsw ymm2,ymm2,ymm4
    36f6  vpmaddubsw ymm3,ymm3,ymm5
    36fb  vpaddw ymm13,ymm13,ymm2
    36ff  vpaddw ymm13,ymm13,ymm3
    3703  vpmaddwd ymm9,ymm13,[rsp+120h]
    370c  vpaddd ymm9,ymm9,[rsp+100h]
    3715  vpbroadcastd ymm4,[r9+r8*8+10h]
    371c  vpbroadcastd ymm5,[r9+r8*8+14h]
    3723  prefetcht1 [rdx+40h]
    3727  vmovdqu ymm2,[rsi+80h]
    372f  vpsrlw ymm3,ymm2,4
    3734  vpand ymm2,ymm2,ymm0
    3738  vpand ymm3,ymm3,ymm0
    373c  vpshufb ymm2,ymm1,ymm2
    3741  vpshufb ymm3,ymm1,ymm3
    3746  vpmaddubsw ymm10,ymm2,ymm4
    374b  vpmaddubsw ymm3,ymm3,ymm5
    3750  vpaddw ymm10,ymm10,ymm3
    3754  vmovdqu ymm2,[rsi+0A0h]
    375c  vpsrlw ymm3,ymm2,4
    3761  vpand ymm2,ymm2,ymm0
    3765  vpand ymm3,ymm3,ymm0
    3769  vpshufb ymm2,ymm1,ymm2
    376e  vpshufb ymm3,ymm1,ymm3
    3773  vpmaddubsw ymm11,ymm2,ymm4
    3778  vpmaddubsw ymm3,ymm3,ymm5
    377d  vpaddw ymm11,ymm11,ymm3
    3781  prefetcht1 [rdx+280h]
    3788  vmovdqu ymm2,[rsi+2C0h]
    3790  vpsrlw ymm3,ymm2,4
    3795  vpand ymm2,ymm2,ymm0
    3799  vpand ymm3,ymm3,ymm0
    379d  vpshufb ymm2,ymm1,ymm2
    37a2  vpshufb ymm3,ymm1,ymm3
    37a7  vpmaddubsw ymm12,ymm2,ymm4
    37ac  vpmaddubsw ymm3,ymm3,ymm5
    37b1  vpaddw ymm12,ymm12,ymm3
    37b5  vmovdqu ymm2,[rsi+2E0h]
    37bd  vpsrlw ymm3,ymm2,4
    37c2  vpand ymm2,ymm2,ymm0
    37c6  vpand ymm3,ymm3,ymm0
    37ca  vpshufb ymm2,ymm1,ymm2
    37cf  vpshufb ymm3,ymm1,ymm3
    37d4  vpmaddubsw ymm13,ymm2,ymm4
    37d9  vpmaddubsw ymm3,ymm3,ymm5
    37de  vpaddw ymm13,ymm13,ymm3
    37e2  vpbroadcastd ymm4,[r9+r8*8+18h]
    37e9  vpbroadcastd ymm5,[r9+r8*8+1Ch]
    37f0  prefetcht1 [rdx+4C0h]
    37f7  vmovdqu ymm2,[rsi+0C0h]
    37ff  vpsrlw ymm3,ymm2,4
    3804  vpand ymm2,ymm2,ymm0
    3808  vpand ymm3,ymm3,ymm0
    380c  vpshufb ymm2,ymm1,ymm2
    3811  vpshufb ymm3,ymm1,ymm3
    3816  vpmaddubsw ymm2,ymm2,ymm4
    381b  vpmaddubsw ymm3,ymm3,ymm5
    3820  vpaddw ymm10,ymm10,ymm2
    3824  vpaddw ymm10,ymm10,ymm3
    3828  vpmaddwd ymm10,ymm10,[rsp+120h]
    3831  vpaddd ymm6,ymm6,ymm10
    3836  vmovdqu ymm2,[rsi+0E0h]
    383e  vpsrlw ymm3,ymm2,4
    3843  vpand ymm2,ymm2,ymm0
    3847  vpand ymm3,ymm3,ymm0
    384b  vpshufb ymm2,ymm1,ymm2
    3850  vpshufb ymm3,ymm1,ymm3
    3855  vpmaddubsw ymm2,ymm2,ymm4
    385a  vpmaddubsw ymm3,ymm3,ymm5
    385f  vpaddw ymm11,ymm11,ymm2
    3863  vpaddw ymm11,ymm11,ymm3
    3867  vpmaddwd ymm11,ymm11,[rsp+120h]
    3870  vpaddd ymm7,ymm7,ymm11
    3875  prefetcht1 [rdx+700h]
    387c  vmovdqu ymm2,[rsi+300h]
    3884  vpsrlw ymm3,ymm2,4
    3889  vpand ymm2,ymm2,ymm0
    388d  vpand ymm3,ymm3,ymm0
    3891  vpshufb ymm2,ymm1,ymm2
    3896  vpshufb ymm3,ymm1,ymm3
    389b  vpmaddubsw ymm2,ymm2,ymm4
    38a0  vpmaddubsw ymm3,ymm3,ymm5
    38a5  vpaddw ymm12,ymm12,ymm2
    38a9  vpaddw ymm12,ymm12,ymm3
    38ad  vpmaddwd ymm12,ymm12,[rsp+120h]
    38b6  vpaddd ymm8,ymm8,ymm12
    38bb  vmovdqu ymm2,[rsi+320h]
    38c3  vpsrlw ymm3,ymm2,4
    38c8  vpand ymm2,ymm2,ymm0
    38cc  vpand ymm3,ymm3,ymm0
    38d0  vpshufb ymm2,ymm1,ymm2
    38d5  vpshufb ymm3,ymm1,ymm3
    38da  vpmaddubsw ymm2,ymm2,ymm4
    38df  vpmaddubsw ymm3,ymm3,ymm5
    38e4  vpaddw ymm13,ymm13,ymm2
    38e8  vpaddw ymm13,ymm13,ymm3
    38ec  vpmaddwd ymm13,ymm13,[rsp+120h]
    38f5  vpaddd ymm9,ymm9,ymm13
    38fa  vbroadcastss ymm4,[r9+r8+40h]
    3901  vpmovzxbd ymm2,[rdi]
    3906  vpslld ymm2,ymm2,17h
    390b  vpmaxud ymm2,ymm2,[rsp+140h]
    3915  vmulps ymm2,ymm2,[rsp+160h]
    391e  vcvtdq2ps ymm6,ymm6
    3922  vmulps ymm6,ymm6,ymm2
    3926  vfmadd213ps ymm6,ymm4,[rsp]
    392c  vmovups [rsp],ymm6
    3931  vpmovzxbd ymm2,[rdi+8]
    3937  vpslld ymm2,ymm2,17h
    393c  vpmaxud ymm2,ymm2,[rsp+140h]
    3946  vmulps ymm2,ymm2,[rsp+160h]
    394f  vcvtdq2ps ymm7,ymm7
    3953  vmulps ymm7,ymm7,ymm2
    3957  vfmadd213ps ymm7,ymm4,[rsp+20h]
    395e  vmovups [rsp+20h],ymm7
    3964  vpmovzxbd ymm2,[rdi+240h]
    396d  vpslld ymm2,ymm2,17h
    3972  vpmaxud ymm2,ymm2,[rsp+140h]
    397c  vmulps ymm2,ymm2,[rsp+160h]
    3985  vcvtdq2ps ymm8,ymm8
    398a  vmulps ymm8,ymm8,ymm2
    398e  vfmadd213ps ymm8,ymm4,[rsp+40h]
    3995  vmovups [rsp+40h],ymm8
    399b  vpmovzxbd ymm2,[rdi+248h]
    39a4  vpslld ymm2,ymm2,17h
    39a9  vpmaxud ymm2,ymm2,[rsp+140h]
    39b3  vmulps ymm2,ymm2,[rsp+160h]
    39bc  vcvtdq2ps ymm9,ymm9
    39c1  vmulps ymm9,ymm9,ymm2
    39c5  vfmadd213ps ymm9,ymm4,[rsp+60h]
    39cc  vmovups [rsp+60h],ymm9
    39d2  vpbroadcastd ymm4,[r9+r8*8]
    39d8  vpbroadcastd ymm5,[r9+r8*8+4]
    39df  prefetcht1 [rdx+80h]
    39e6  vmovdqu ymm2,[rsi+480h]
    39ee  vpsrlw ymm3,ymm2,4
    39f3  vpand ymm2,ymm2,ymm0
    39f7  vpand ymm3,ymm3,ymm0
    39fb  vpshufb ymm2,ymm1,ymm2
    3a00  vpshufb ymm3,ymm1,ymm3
    3a05  vpmaddubsw ymm10,ymm2,ymm4
    3a0a  vpmaddubsw ymm3,ymm3,ymm5
    3a0f  vpaddw ymm10,ymm10,ymm3
    3a13  vmovdqu ymm2,[rsi+4A0h]
    3a1b  vpsrlw ymm3,ymm2,4
    3a20  vpand ymm2,ymm2,ymm0
    3a24  vpand ymm3,ymm3,ymm0
    3a28  vpshufb ymm2,ymm1,ymm2
    3a2d  vpshufb ymm3,ymm1,ymm3
    3a32  vpmaddubsw ymm11,ymm2,ymm4
    3a37  vpmaddubsw ymm3,ymm3,ymm5
    3a3c  vpaddw ymm11,ymm11,ymm3
    3a40  prefetcht1 [rdx+2C0h]
    3a47  vmovdqu ymm2,[rsi+6C0h]
    3a4f  vpsrlw ymm3,ymm2,4
    3a54  vpand ymm2,ymm2,ymm0
    3a58  vpand ymm3,ymm3,ymm0
    3a5c  vpshufb ymm2,ymm1,ymm2
    3a61  vpshufb ymm3,ymm1,ymm3
    3a66  vpmaddubsw ymm12,ymm2,ymm4
    3a6b  vpmaddubsw ymm3,ymm3,ymm5
    3a70  vpaddw ymm12,ymm12,ymm3
    3a74  vmovdqu ymm2,[rsi+6E0h]
    3a7c  vpsrlw ymm3,ymm2,4
    3a81  vpand ymm2,ymm2,ymm0
    3a85  vpand ymm3,ymm3,ymm0
    3a89  vpshufb ymm2,ymm1,ymm2
    3a8e  vpshufb ymm3,ymm1,ymm3
    3a93  vpmaddubsw ymm13,ymm2,ymm4
    3a98  vpmaddubsw ymm3,ymm3,ymm5
    3a9d  vpaddw ymm13,ymm13,ymm3
    3aa1  vpbroadcastd ymm4,[r9+r8*8+8]
    3aa8  vpbroadcastd ymm5,[r9+r8*8+0Ch]
    3aaf  prefetcht1 [rdx+500h]
    3ab6  vmovdqu ymm2,[rsi+4C0h]
    3abe  vpsrlw ymm3,ymm2,4
    3ac3  vpand ymm2,ymm2,ymm0
    3ac7  vpand ymm3,ymm3,ymm0
    3acb  vpshufb ymm2,ymm1,ymm2
    3ad0  vpshufb ymm3,ymm1,ymm3
    3ad5  vpmaddubsw ymm2,ymm2,ymm4
    3ada  vpmaddubsw ymm3,ymm3,ymm5
    3adf  vpaddw ymm10,ymm10,ymm2
    3ae3  vpaddw ymm10,ymm10,ymm3
    3ae7  vpmaddwd ymm6,ymm10,[rsp+120h]
    3af0  vpaddd ymm6,ymm6,[rsp+100h]
    3af9  vmovdqu ymm2,[rsi+4E0h]
    3b01  vpsrlw ymm3,ymm2,4
    3b06  vpand ymm2,ymm2,ymm0
    3b0a  vpand ymm3,ymm3,ymm0
    3b0e  vpshufb ymm2,ymm1,ymm2
    3b13  vpshufb ymm3,ymm1,ymm3
    3b18  vpmaddubsw ymm2,ymm2,ymm4
    3b1d  vpmaddubsw ymm3,ymm3,ymm5
    3b22  vpaddw ymm11,ymm11,ymm2
    3b26  vpaddw ymm11,ymm11,ymm3
    3b2a  vpmaddwd ymm7,ymm11,[rsp+120h]
    3b33  vpaddd ymm7,ymm7,[rsp+100h]
    3b3c  prefetcht1 [rdx+740h]
    3b43  vmovdqu ymm2,[rsi+700h]
    3b4b  vpsrlw ymm3,ymm2,4
    3b50  vpand ymm2,ymm2,ymm0
    3b54  vpand ymm3,ymm3,ymm0
    3b58  vpshufb ymm2,ymm1,ymm2
    3b5d  vpshufb ymm3,ymm1,ymm3
    3b62  vpmaddubsw ymm2,ymm2,ymm4
    3b67  vpmaddubsw ymm3,ymm3,ymm5
    3b6c  vpaddw ymm12,ymm12,ymm2
    3b70  vpaddw ymm12,ymm12,ymm3
    3b74  vpmaddwd ymm8,ymm12,[rsp+120h]
    3b7d  vpaddd ymm8,ymm8,[rsp+100h]
    3b86  vmovdqu ymm2,[rsi+720h]
    3b8e  vpsrlw ymm3,ymm2,4
    3b93  vpand ymm2,ymm2,ymm0
    3b97  vpand ymm3,ymm3,ymm0
    3b9b  vpshufb ymm2,ymm1,ymm2
    3ba0  vpshufb ymm3,ymm1,ymm3
    3ba5  vpmaddubsw ymm2,ymm2,ymm4
    3baa  vpmaddubsw ymm3,ymm3,ymm5
    3baf  vpaddw ymm13,ymm13,ymm2
    3bb3  vpaddw ymm13,ymm13,ymm3
    3bb7  vpmaddwd ymm9,ymm13,[rsp+120h]
    3bc0  vpaddd ymm9,ymm9,[rsp+100h]
    3bc9  vpbroadcastd ymm4,[r9+r8*8+10h]
    3bd0  vpbroadcastd ymm5,[r9+r8*8+14h]
    3bd7  prefetcht1 [rdx+0C0h]
    3bde  vmovdqu ymm2,[rsi+500h]
    3be6  vpsrlw ymm3,ymm2,4
    3beb  vpand ymm2,ymm2,ymm0
    3bef  vpand ymm3,ymm3,ymm0
    3bf3  vpshufb ymm2,ymm1,ymm2
    3bf8  vpshufb ymm3,ymm1,ymm3
    3bfd  vpmaddubsw ymm10,ymm2,ymm4
    3c02  vpmaddubsw ymm3,ymm3,ymm5
    3c07  vpaddw ymm10,ymm10,ymm3
    3c0b  vmovdqu ymm2,[rsi+520h]
    3c13  vpsrlw ymm3,ymm2,4
    3c18  vpand ymm2,ymm2,ymm0
    3c1c  vpand ymm3,ymm3,ymm0
    3c20  vpshufb ymm2,ymm1,ymm2
    3c25  vpshufb ymm3,ymm1,ymm3
    3c2a  vpmaddubsw ymm11,ymm2,ymm4
    3c2f  vpmaddubsw ymm3,ymm3,ymm5
    3c34  vpaddw ymm11,ymm11,ymm3
    3c38  prefetcht1 [rdx+300h]
    3c3f  vmovdqu ymm2,[rsi+740h]
    3c47  vpsrlw ymm3,ymm2,4
    3c4c  vpand ymm2,ymm2,ymm0
    3c50  vpand ymm3,ymm3,ymm0
    3c54  vpshufb ymm2,ymm1,ymm2
    3c59  vpshufb ymm3,ymm1,ymm3
    3c5e  vpmaddubsw ymm12,ymm2,ymm4
    3c63  vpmaddubsw ymm3,ymm3,ymm5
    3c68  vpaddw ymm12,ymm12,ymm3
    3c6c  vmovdqu ymm2,[rsi+760h]
    3c74  vpsrlw ymm3,ymm2,4
    3c79  vpand ymm2,ymm2,ymm0
    3c7d  vpand ymm3,ymm3,ymm0
    3c81  vpshufb ymm2,ymm1,ymm2
    3c86  vpshufb ymm3,ymm1,ymm3
    3c8b  vpmaddubsw ymm13,ymm2,ymm4
    3c90  vpmaddubsw ymm3,ymm3,ymm5
    3c95  vpaddw ymm13,ymm13,ymm3
    3c99  vpbroadcastd ymm4,[r9+r8*8+18h]
    3ca0  vpbroadcastd ymm5,[r9+r8*8+1Ch]
    3ca7  prefetcht1 [rdx+540h]
    3cae  vmovdqu ymm2,[rsi+540h]
    3cb6  vpsrlw ymm3,ymm2,4
    3cbb  vpand ymm2,ymm2,ymm0
    3cbf  vpand ymm3,ymm3,ymm0
    3cc3  vpshufb ymm2,ymm1,ymm2
    3cc8  vpshufb ymm3,ymm1,ymm3
    3ccd  vpmaddubsw ymm2,ymm2,ymm4
    3cd2  vpmaddubsw ymm3,ymm3,ymm5
    3cd7  vpaddw ymm10,ymm10,ymm2
    3cdb  vpaddw ymm10,ymm10,ymm3
    3cdf  vpmaddwd ymm10,ymm10,[rsp+120h]
    3ce8  vpaddd ymm6,ymm6,ymm10
    3ced  vmovdqu ymm2,[rsi+560h]
    3cf5  vpsrlw ymm3,ymm2,4
    3cfa  vpand ymm2,ymm2,ymm0
    3cfe  vpand ymm3,ymm3,ymm0
    3d02  vpshufb ymm2,ymm1,ymm2
    3d07  vpshufb ymm3,ymm1,ymm3
    3d0c  vpmaddubsw ymm2,ymm2,ymm4
    3d11  vpmaddubsw ymm3,ymm3,ymm5
    3d16  vpaddw ymm11,ymm11,ymm2
    3d1a  vpaddw ymm11,ymm11,ymm3
    3d1e  vpmaddwd ymm11,ymm11,[rsp+120h]
    3d27  vpaddd ymm7,ymm7,ymm11
    3d2c  prefetcht1 [rdx+780h]
    3d33  vmovdqu ymm2,[rsi+780h]
    3d3b  vpsrlw ymm3,ymm2,4
    3d40  vpand ymm2,ymm2,ymm0
    3d44  vpand ymm3,ymm3,ymm0
    3d48  vpshufb ymm2,ymm1,ymm2
    3d4d  vpshufb ymm3,ymm1,ymm3
    3d52  vpmaddubsw ymm2,ymm2,ymm4
    3d57  vpmaddubsw ymm3,ymm3,ymm5
    3d5c  vpaddw ymm12,ymm12,ymm2
    3d60  vpaddw ymm12,ymm12,ymm3
    3d64  vpmaddwd ymm12,ymm12,[rsp+120h]
    3d6d  vpaddd ymm8,ymm8,ymm12
    3d72  vmovdqu ymm2,[rsi+7A0h]
    3d7a  vpsrlw ymm3,ymm2,4
    3d7f  vpand ymm2,ymm2,ymm0
    3d83  vpand ymm3,ymm3,ymm0
    3d87  vpshufb ymm2,ymm1,ymm2
    3d8c  vpshufb ymm3,ymm1,ymm3
    3d91  vpmaddubsw ymm2,ymm2,ymm4
    3d96  vpmaddubsw ymm3,ymm3,ymm5
    3d9b  vpaddw ymm13,ymm13,ymm2
    3d9f  vpaddw ymm13,ymm13,ymm3
    3da3  vpmaddwd ymm13,ymm13,[rsp+120h]
    3dac  vpaddd ymm9,ymm9,ymm13
    3db1  vbroadcastss ymm4,[r9+r8+40h]
    3db8  vpmovzxbd ymm2,[rdi+480h]
    3dc1  vpslld ymm2,ymm2,17h
    3dc6  vpmaxud ymm2,ymm2,[rsp+140h]
    3dd0  vmulps ymm2,ymm2,[rsp+160h]
    3dd9  vcvtdq2ps ymm6,ymm6
    3ddd  vmulps ymm6,ymm6,ymm2
    3de1  vfmadd213ps ymm6,ymm4,[rsp+80h]
    3deb  vmovups [rsp+80h],ymm6
    3df4  vpmovzxbd ymm2,[rdi+488h]
    3dfd  vpslld ymm2,ymm2,17h
    3e02  vpmaxud ymm2,ymm2,[rsp+140h]
    3e0c  vmulps ymm2,ymm2,[rsp+160h]
    3e15  vcvtdq2ps ymm7,ymm7
    3e19  vmulps ymm7,ymm7,ymm2
    3e1d  vfmadd213ps ymm7,ymm4,[rsp+0A0h]
    3e27  vmovups [rsp+0A0h],ymm7
    3e30  vpmovzxbd ymm2,[rdi+6C0h]
    3e39  vpslld ymm2,ymm2,17h
    3e3e  vpmaxud ymm2,ymm2,[rsp+140h]
    3e48  vmulps ymm2,ymm2,[rsp+160h]
    3e51  vcvtdq2ps ymm8,ymm8
    3e56  vmulps ymm8,ymm8,ymm2
    3e5a  vfmadd213ps ymm8,ymm4,[rsp+0C0h]
    3e64  vmovups [rsp+0C0h],ymm8
    3e6d  vpmovzxbd ymm2,[rdi+6C8h]
    3e76  vpslld ymm2,ymm2,17h
    3e7b  vpmaxud ymm2,ymm2,[rsp+140h]
    3e85  vmulps ymm2,ymm2,[rsp+160h]
    3e8e  vcvtdq2ps ymm9,ymm9
    3e93  vmulps ymm9,ymm9,ymm2
    3e97  vfmadd213ps ymm9,ymm4,[rsp+0E0h]
    3ea1  vmovups [rsp+0E0h],ymm9
    3eaa  add rdi,10h
    3eae  add rsi,100h
    3eb5  add rdx,100h
    3ebc  add r8,4
    3ec0  cmp r8,8
    3ec4  jne near 00000000000034E2h
    3eca  mov rsi,[rsp+180h]
    3ed2  mov r8,[rsp+188h]
    3eda  vmovups ymm6,[rsp]
    3edf  vmovups [rsi],ymm6
    3ee3  vmovups ymm6,[rsp+20h]
    3ee9  vmovups [rsi+20h],ymm6
    3eee  vmovups ymm6,[rsp+80h]
    3ef7  vmovups [rsi+40h],ymm6
    3efc  vmovups ymm6,[rsp+0A0h]
    3f05  vmovups [rsi+60h],ymm6
    3f0a  vmovups ymm6,[rsp+40h]
    3f10  vmovups [rsi+80h],ymm6
    3f18  vmovups ymm6,[rsp+60h]
    3f1e  vmovups [rsi+0A0h],ymm6
    3f26  vmovups ymm6,[rsp+0C0h]
    3f2f  vmovups [rsi+0C0h],ymm6
    3f37  vmovups ymm6,[rsp+0E0h]
    3f40  vmovups [rsi+0E0h],ymm6
    3f48  add rsp,190h
    3f4f  vzeroupper
    3f52  ret
    3f53  (bad)
    3f57  add byte [rax+18080h],1
    3f5e  add [rax],al
    3f60  add [rax],al
    3f63  add [rax],al
    3f65  add [rdi],bh
    3f67  hlt
    3f68  (bad)
    3f6a  dec dword [rcx*1+12100F0Eh]
    3f71  adc al,18h
    3f73  or al,0Bh
    3f75  or cl,[rcx]
    3f77  or [rsi],al
    3f79  add al,0
