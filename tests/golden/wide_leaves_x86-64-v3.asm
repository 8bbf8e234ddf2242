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
    2184  jl near 00000000000023E1h
    218a  mov r8,[rdi]
    218d  mov r9,[rdi+40h]
    2191  prefetcht1 [r9]
    2195  prefetcht1 [r9+40h]
    219a  prefetcht1 [r9+80h]
    21a2  prefetcht1 [r9+0C0h]
    21aa  prefetcht1 [r9+100h]
    21b2  prefetcht1 [r9+140h]
    21ba  prefetcht1 [r9+180h]
    21c2  prefetcht1 [r9+1C0h]
    21ca  vpxor ymm3,ymm3,ymm3
    21ce  vpxor ymm4,ymm4,ymm4
    21d2  vpxor ymm5,ymm5,ymm5
    21d6  vpxor ymm6,ymm6,ymm6
    21da  vpxor ymm7,ymm7,ymm7
    21de  vpxor ymm8,ymm8,ymm8
    21e3  vpxor ymm9,ymm9,ymm9
    21e8  vpxor ymm10,ymm10,ymm10
    21ed  xor r10,r10
    21f0  xor r11,r11
    21f3  vcvtph2ps ymm0,[r8+r10]
    21f9  vcvtph2ps ymm1,[r8+r10+10h]
    2200  vbroadcastss ymm2,[rsi+r11]
    2206  vfmadd231ps ymm3,ymm0,ymm2
    220b  vfmadd231ps ymm4,ymm1,ymm2
    2210  vbroadcastss ymm2,[rsi+r11+80h]
    221a  vfmadd231ps ymm5,ymm0,ymm2
    221f  vfmadd231ps ymm6,ymm1,ymm2
    2224  vcvtph2ps ymm0,[r8+r10+20h]
    222b  vcvtph2ps ymm1,[r8+r10+30h]
    2232  vbroadcastss ymm2,[rsi+r11+4]
    2239  vfmadd231ps ymm7,ymm0,ymm2
    223e  vfmadd231ps ymm8,ymm1,ymm2
    2243  vbroadcastss ymm2,[rsi+r11+84h]
    224d  vfmadd231ps ymm9,ymm0,ymm2
    2252  vfmadd231ps ymm10,ymm1,ymm2
    2257  add r10,80h
    225e  add r11,10h
    2262  cmp r11,80h
    2269  jne short 00000000000021F3h
    226b  vaddps ymm11,ymm3,ymm7
    226f  vaddps ymm12,ymm4,ymm8
    2274  vaddps ymm13,ymm5,ymm9
    2279  vaddps ymm14,ymm6,ymm10
    227e  prefetcht1 [r9+200h]
    2286  prefetcht1 [r9+240h]
    228e  prefetcht1 [r9+280h]
    2296  prefetcht1 [r9+2C0h]
    229e  prefetcht1 [r9+300h]
    22a6  prefetcht1 [r9+340h]
    22ae  prefetcht1 [r9+380h]
    22b6  prefetcht1 [r9+3C0h]
    22be  vpxor ymm3,ymm3,ymm3
    22c2  vpxor ymm4,ymm4,ymm4
    22c6  vpxor ymm5,ymm5,ymm5
    22ca  vpxor ymm6,ymm6,ymm6
    22ce  vpxor ymm7,ymm7,ymm7
    22d2  vpxor ymm8,ymm8,ymm8
    22d7  vpxor ymm9,ymm9,ymm9
    22dc  vpxor ymm10,ymm10,ymm10
    22e1  xor r10,r10
    22e4  xor r11,r11
    22e7  vcvtph2ps ymm0,[r8+r10+40h]
    22ee  vcvtph2ps ymm1,[r8+r10+50h]
    22f5  vbroadcastss ymm2,[rsi+r11+8]
    22fc  vfmadd231ps ymm3,ymm0,ymm2
    2301  vfmadd231ps ymm4,ymm1,ymm2
    2306  vbroadcastss ymm2,[rsi+r11+88h]
    2310  vfmadd231ps ymm5,ymm0,ymm2
    2315  vfmadd231ps ymm6,ymm1,ymm2
    231a  vcvtph2ps ymm0,[r8+r10+60h]
    2321  vcvtph2ps ymm1,[r8+r10+70h]
    2328  vbroadcastss ymm2,[rsi+r11+0Ch]
    232f  vfmadd231ps ymm7,ymm0,ymm2
    2334  vfmadd231ps ymm8,ymm1,ymm2
    2339  vbroadcastss ymm2,[rsi+r11+8Ch]
    2343  vfmadd231ps ymm9,ymm0,ymm2
    2348  vfmadd231ps ymm10,ymm1,ymm2
    234d  add r10,80h
    2354  add r11,10h
    2358  cmp r11,80h
    235f  jne short 00000000000022E7h
    2361  vaddps ymm3,ymm3,ymm7
    2365  vaddps ymm3,ymm11,ymm3
    2369  vbroadcastss ymm2,[rel 23E5h]
    2372  vmulps ymm3,ymm3,ymm2
    2376  vmovups [rdx],ymm3
    237a  vaddps ymm4,ymm4,ymm8
    237f  vaddps ymm4,ymm12,ymm4
    2383  vbroadcastss ymm2,[rel 23E5h]
    238c  vmulps ymm4,ymm4,ymm2
    2390  vmovups [rdx+20h],ymm4
    2395  vaddps ymm5,ymm5,ymm9
    239a  vaddps ymm5,ymm13,ymm5
    239e  vbroadcastss ymm2,[rel 23E5h]
    23a7  vmulps ymm5,ymm5,ymm2
    23ab  vmovups [rdx+1040h],ymm5
    23b3  vaddps ymm6,ymm6,ymm10
    23b8  vaddps ymm6,ymm14,ymm6
    23bc  vbroadcastss ymm2,[rel 23E5h]
    23c5  vmulps ymm6,ymm6,ymm2
    23c9  vmovups [rdx+1060h],ymm6
    23d1  add rdi,8
    23d5  add rdx,40h
    23d9  dec rcx
    23dc  jmp 0000000000002180h
    23e1  vzeroupper
    23e4  ret
    23e5  add [rax],al
    23e7  add [rsi],bh

value_F16_d32_g2:
    2400  push rbx
    2401  push rbp
    2402  push r12
    2404  push r13
    2406  cmp r8,r9
    2409  jge near 00000000000025CBh
    240f  vmovups ymm3,[rdx]
    2413  vmovups ymm4,[rdx+20h]
    2418  vmovups ymm5,[rdx+80h]
    2420  vmovups ymm6,[rdx+0A0h]
    2428  imul r13,r8,40h
    242c  mov rbx,r8
    242f  xor r12,r12
    2432  xor rbp,rbp
    2435  mov r10,[rdi+r12*8]
    2439  add r10,r13
    243c  xor r13,r13
    243f  mov r11,[rdi+r12*8+40h]
    2444  prefetcht1 [r11]
    2448  prefetcht1 [r11+40h]
    244d  prefetcht1 [r11+80h]
    2455  prefetcht1 [r11+0C0h]
    245d  prefetcht1 [r11+100h]
    2465  prefetcht1 [r11+140h]
    246d  prefetcht1 [r11+180h]
    2475  prefetcht1 [r11+1C0h]
    247d  add rbp,10h
    2481  cmp rbp,r9
    2484  cmovg rbp,r9
    2488  vcvtph2ps ymm1,[r10]
    248d  vcvtph2ps ymm2,[r10+10h]
    2493  vbroadcastss ymm0,[rsi+rbx*4]
    2499  vfmadd231ps ymm3,ymm1,ymm0
    249e  vfmadd231ps ymm4,ymm2,ymm0
    24a3  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    24ad  vfmadd231ps ymm5,ymm1,ymm0
    24b2  vfmadd231ps ymm6,ymm2,ymm0
    24b7  add r10,40h
    24bb  inc rbx
    24be  cmp rbx,rbp
    24c1  jl short 0000000000002488h
    24c3  inc r12
    24c6  cmp r12,rcx
    24c9  jl near 0000000000002435h
    24cf  vmovups [rdx],ymm3
    24d3  vmovups [rdx+20h],ymm4
    24d8  vmovups [rdx+80h],ymm5
    24e0  vmovups [rdx+0A0h],ymm6
    24e8  vmovups ymm3,[rdx+40h]
    24ed  vmovups ymm4,[rdx+60h]
    24f2  vmovups ymm5,[rdx+0C0h]
    24fa  vmovups ymm6,[rdx+0E0h]
    2502  imul r13,r8,40h
    2506  mov rbx,r8
    2509  xor r12,r12
    250c  xor rbp,rbp
    250f  mov r10,[rdi+r12*8]
    2513  add r10,r13
    2516  xor r13,r13
    2519  mov r11,[rdi+r12*8+40h]
    251e  prefetcht1 [r11+200h]
    2526  prefetcht1 [r11+240h]
    252e  prefetcht1 [r11+280h]
    2536  prefetcht1 [r11+2C0h]
    253e  prefetcht1 [r11+300h]
    2546  prefetcht1 [r11+340h]
    254e  prefetcht1 [r11+380h]
    2556  prefetcht1 [r11+3C0h]
    255e  add rbp,10h
    2562  cmp rbp,r9
    2565  cmovg rbp,r9
    2569  vcvtph2ps ymm1,[r10+20h]
    256f  vcvtph2ps ymm2,[r10+30h]
    2575  vbroadcastss ymm0,[rsi+rbx*4]
    257b  vfmadd231ps ymm3,ymm1,ymm0
    2580  vfmadd231ps ymm4,ymm2,ymm0
    2585  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    258f  vfmadd231ps ymm5,ymm1,ymm0
    2594  vfmadd231ps ymm6,ymm2,ymm0
    2599  add r10,40h
    259d  inc rbx
    25a0  cmp rbx,rbp
    25a3  jl short 0000000000002569h
    25a5  inc r12
    25a8  cmp r12,rcx
    25ab  jl near 000000000000250Fh
    25b1  vmovups [rdx+40h],ymm3
    25b6  vmovups [rdx+60h],ymm4
    25bb  vmovups [rdx+0C0h],ymm5
    25c3  vmovups [rdx+0E0h],ymm6
    25cb  vzeroupper
    25ce  pop r13
    25d0  pop r12
    25d2  pop rbp
    25d3  pop rbx
    25d4  ret

softmax:
    2600  push rbx
    2601  cmp rsi,1
    2605  jl near 000000000000288Eh
    260b  lea r10,[rel 2893h]
    2612  imul rbx,rsi,40h
    2616  mov rax,rdx
    2619  xor r11,r11
    261c  vmovd xmm5,eax
    2620  vpbroadcastd ymm5,xmm5
    2625  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    262e  vmovups ymm6,[rdi+r11]
    2634  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    263e  vmovups [rdi+r11],ymm6
    2644  vpcmpgtd ymm7,ymm5,[r10+200h]
    264d  vmovups ymm6,[rdi+r11+20h]
    2654  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    265e  vmovups [rdi+r11+20h],ymm6
    2665  imul r11,rsi,10h
    2669  mov rax,rcx
    266c  sub rax,r11
    266f  add rax,10h
    2675  mov r11,rbx
    2678  sub r11,40h
    267c  vmovd xmm5,eax
    2680  vpbroadcastd ymm5,xmm5
    2685  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    268e  vmovups ymm6,[r10+1C0h]
    2697  vblendvps ymm6,ymm6,[rdi+r11],ymm7
    269e  vmovups [rdi+r11],ymm6
    26a4  vpcmpgtd ymm7,ymm5,[r10+200h]
    26ad  vmovups ymm6,[r10+1C0h]
    26b6  vblendvps ymm6,ymm6,[rdi+r11+20h],ymm7
    26be  vmovups [rdi+r11+20h],ymm6
    26c5  vmovups ymm0,[r10+1C0h]
    26ce  vmovups ymm1,[r10+1C0h]
    26d7  xor r11,r11
    26da  vmovups ymm4,[rdi+r11]
    26e0  vmaxps ymm0,ymm4,ymm0
    26e4  vmovups ymm4,[rdi+r11+20h]
    26eb  vmaxps ymm1,ymm4,ymm1
    26ef  add r11,40h
    26f3  cmp r11,rbx
    26f6  jl short 00000000000026DAh
    26f8  vmaxps ymm0,ymm1,ymm0
    26fc  vperm2f128 ymm4,ymm0,ymm0,1
    2702  vmaxps ymm0,ymm4,ymm0
    2706  vpshufd ymm4,ymm0,4Eh
    270b  vmaxps ymm0,ymm4,ymm0
    270f  vpshufd ymm4,ymm0,0B1h
    2714  vmaxps ymm0,ymm4,ymm0
    2718  vmovss [r8],xmm0
    271d  vpxor ymm2,ymm2,ymm2
    2721  vpxor ymm3,ymm3,ymm3
    2725  xor r11,r11
    2728  vmovups ymm4,[rdi+r11]
    272e  vsubps ymm4,ymm4,ymm0
    2732  vcmpltps ymm7,ymm4,[r10+0A0h]
    273c  vminps ymm4,ymm4,[r10]
    2741  vmovups ymm5,[r10+20h]
    2747  vfmadd213ps ymm5,ymm4,[r10+40h]
    274d  vsubps ymm6,ymm5,[r10+40h]
    2753  vfmadd231ps ymm4,ymm6,[r10+60h]
    2759  vfmadd231ps ymm4,ymm6,[r10+80h]
    2762  vmovups ymm6,[r10+0C0h]
    276b  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    2774  vfmadd213ps ymm6,ymm4,[r10+100h]
    277d  vfmadd213ps ymm6,ymm4,[r10+120h]
    2786  vfmadd213ps ymm6,ymm4,[r10+140h]
    278f  vfmadd213ps ymm6,ymm4,[r10+160h]
    2798  vfmadd213ps ymm6,ymm4,[r10+180h]
    27a1  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    27aa  vpslld ymm5,ymm5,17h
    27af  vpaddd ymm6,ymm6,ymm5
    27b3  vandnps ymm4,ymm7,ymm6
    27b7  vmovups [rdi+r11],ymm4
    27bd  vaddps ymm2,ymm2,ymm4
    27c1  vmovups ymm4,[rdi+r11+20h]
    27c8  vsubps ymm4,ymm4,ymm0
    27cc  vcmpltps ymm7,ymm4,[r10+0A0h]
    27d6  vminps ymm4,ymm4,[r10]
    27db  vmovups ymm5,[r10+20h]
    27e1  vfmadd213ps ymm5,ymm4,[r10+40h]
    27e7  vsubps ymm6,ymm5,[r10+40h]
    27ed  vfmadd231ps ymm4,ymm6,[r10+60h]
    27f3  vfmadd231ps ymm4,ymm6,[r10+80h]
    27fc  vmovups ymm6,[r10+0C0h]
    2805  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    280e  vfmadd213ps ymm6,ymm4,[r10+100h]
    2817  vfmadd213ps ymm6,ymm4,[r10+120h]
    2820  vfmadd213ps ymm6,ymm4,[r10+140h]
    2829  vfmadd213ps ymm6,ymm4,[r10+160h]
    2832  vfmadd213ps ymm6,ymm4,[r10+180h]
    283b  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    2844  vpslld ymm5,ymm5,17h
    2849  vpaddd ymm6,ymm6,ymm5
    284d  vandnps ymm4,ymm7,ymm6
    2851  vmovups [rdi+r11+20h],ymm4
    2858  vaddps ymm3,ymm3,ymm4
    285c  add r11,40h
    2860  cmp r11,rbx
    2863  jl near 0000000000002728h
    2869  vaddps ymm2,ymm2,ymm3
    286d  vperm2f128 ymm4,ymm2,ymm2,1
    2873  vaddps ymm2,ymm2,ymm4
    2877  vpshufd ymm4,ymm2,4Eh
    287c  vaddps ymm2,ymm2,ymm4
    2880  vpshufd ymm4,ymm2,0B1h
    2885  vaddps ymm2,ymm2,ymm4
    2889  vmovss [r9],xmm2
    288e  vzeroupper
    2891  pop rbx
    2892  ret
    2893  add [rax],al
    2895  mov al,42h
    2897  add [rax],al
    2899  mov al,42h
    289b  add [rax],al
    289d  mov al,42h
    289f  add [rax],al
    28a1  mov al,42h
    28a3  add [rax],al
    28a5  mov al,42h
    28a7  add [rax],al
    28a9  mov al,42h
    28ab  add [rax],al
    28ad  mov al,42h
    28af  add [rax],al
    28b1  mov al,42h
    28b3  cmp ebp,[rdx-55C4C048h]
    28b9  mov eax,0B8AA3B3Fh
    28be  (bad)
    28c0  stosb
    28c1  mov eax,0B8AA3B3Fh
    28c6  (bad)
    28c8  stosb
    28c9  mov eax,0B8AA3B3Fh
    28ce  (bad)
    28d0  stosb
    28d1  mov eax,4000003Fh
    28d6  add [r8],al
    28d9  add [r8],al
    28dd  add [r8],al
    28e1  add [r8],al
    28e5  add [r8],al
    28e9  add [r8],al
    28ed  add [r8],al
    28f1  add [r10+31h],sil
    28f6  mov edi,0BF317200h
    28fb  add [rdx+31h],dh
    28fe  mov edi,0BF317200h
    2903  add [rdx+31h],dh
    2906  mov edi,0BF317200h
    290b  add [rdx+31h],dh
    290e  mov edi,0BF317200h
    2913  (bad)
    2919  mov edi,0BFBE8EB5h
    291e  mov ch,8Eh
    2920  mov esi,0BE8EB5BFh
    2925  mov edi,0BFBE8EB5h
    292a  mov ch,8Eh
    292c  mov esi,0BE8EB5BFh
    2931  mov edi,0AE0000B5h
    2936  ret 0
    2939  scasb
    293a  ret 0
    293d  scasb
    293e  ret 0
    2941  scasb
    2942  ret 0
    2945  scasb
    2946  ret 0
    2949  scasb
    294a  ret 0
    294d  scasb
    294e  ret 0
    2951  scasb
    2952  ret 6967h
    2955  push rax
    2956  cmp [rdi+69h],esp
    2959  push rax
    295a  cmp [rdi+69h],esp
    295d  push rax
    295e  cmp [rdi+69h],esp
    2961  push rax
    2962  cmp [rdi+69h],esp
    2965  push rax
    2966  cmp [rdi+69h],esp
    2969  push rax
    296a  cmp [rdi+69h],esp
    296d  push rax
    296e  cmp [rdi+69h],esp
    2971  push rax
    2972  cmp esi,ecx
    2974  mov r15b,3Ah
    2977  (bad)
    2979  mov bh,3Ah
    297b  (bad)
    297d  mov bh,3Ah
    297f  (bad)
    2981  mov bh,3Ah
    2983  (bad)
    2985  mov bh,3Ah
    2987  (bad)
    2989  mov bh,3Ah
    298b  (bad)
    298d  mov bh,3Ah
    298f  (bad)
    2991  mov bh,3Ah
    2993  or [rcx-76F7C3F8h],cl
    2999  or [rax+rcx],bh
    299c  mov [rax],ecx
    299e  cmp al,8
    29a0  mov [rax],ecx
    29a2  cmp al,8
    29a4  mov [rax],ecx
    29a6  cmp al,8
    29a8  mov [rax],ecx
    29aa  cmp al,8
    29ac  mov [rax],ecx
    29ae  cmp al,8
    29b0  mov [rax],ecx
    29b2  cmp al,0C1h
    29b4  test eax,0A9C13D2Ah
    29b9  sub bh,[rel 3D2AD380h]
    29bf  shr dword [rcx-563EC2D6h],2Ah
    29c6  cmp eax,3D2AA9C1h
    29cb  shr dword [rcx-563EC2D6h],2Ah
    29d2  cmp eax,3E2AAAAAh
    29d7  stosb
    29d8  stosb
    29d9  sub bh,[rsi]
    29db  stosb
    29dc  stosb
    29dd  sub bh,[rsi]
    29df  stosb
    29e0  stosb
    29e1  sub bh,[rsi]
    29e3  stosb
    29e4  stosb
    29e5  sub bh,[rsi]
    29e7  stosb
    29e8  stosb
    29e9  sub bh,[rsi]
    29eb  stosb
    29ec  stosb
    29ed  sub bh,[rsi]
    29ef  stosb
    29f0  stosb
    29f1  sub bh,[rsi]
    29f3  add [rax],al
    29f5  add [rdi],bh
    29f7  add [rax],al
    29f9  add [rdi],bh
    29fb  add [rax],al
    29fd  add [rdi],bh
    29ff  add [rax],al
    2a01  add [rdi],bh
    2a03  add [rax],al
    2a05  add [rdi],bh
    2a07  add [rax],al
    2a09  add [rdi],bh
    2a0b  add [rax],al
    2a0d  add [rdi],bh
    2a0f  add [rax],al
    2a11  add [rdi],bh
    2a13  add [rax],al
    2a15  cmp byte [rdi],0
    2a18  add [rax-7FFFFFC1h],al
    2a1e  (bad)
    2a20  add [rax-7FFFFFC1h],al
    2a26  (bad)
    2a28  add [rax-7FFFFFC1h],al
    2a2e  (bad)
    2a30  add [rax-7FFFFFC1h],al
    2a36  (bad)
    2a38  add [rax-7FFFFFC1h],al
    2a3e  (bad)
    2a40  add [rax-7FFFFFC1h],al
    2a46  (bad)
    2a48  add [rax-7FFFFFC1h],al
    2a4e  (bad)
    2a50  add [rax-7FFFFFC1h],al
    2a56  inc dword [rax]
    2a58  add [rax-7FFFFF01h],al
    2a5e  inc dword [rax]
    2a60  add [rax-7FFFFF01h],al
    2a66  inc dword [rax]
    2a68  add [rax-7FFFFF01h],al
    2a6e  inc dword [rax]
    2a70  add [rax+0FFh],al
    2a76  add [rcx],al
    2a78  add [rax],al
    2a7a  add [rdx],al
    2a7c  add [rax],al
    2a7e  add [rbx],al
    2a80  add [rax],al
    2a82  add [rax+rax],al
    2a85  add [rax],al
    2a87  add eax,6000000h
    2a8c  add [rax],al
    2a8e  add [rdi],al
    2a90  add [rax],al
    2a92  add [rax],cl
    2a94  add [rax],al
    2a96  add [rcx],cl
    2a98  add [rax],al
    2a9a  add [rdx],cl
    2a9c  add [rax],al
    2a9e  add [rbx],cl
    2aa0  add [rax],al
    2aa2  add [rax+rax],cl
    2aa5  add [rax],al
    2aa7  or eax,0E000000h
    2aac  add [rax],al
    2aae  add [rdi],cl
    2ab0  add [rax],al
    2ab2  (bad)

combine_d32_g1_sinks:
    2ac0  push rbx
    2ac1  push rbp
    2ac2  lea rbp,[rel 2C95h]
    2ac9  vbroadcastss ymm0,[rcx]
    2ace  mov r10,r9
    2ad1  xor rbx,rbx
    2ad4  cmp r10,1
    2ad8  jl short 0000000000002AEDh
    2ada  vbroadcastss ymm2,[rsi+rbx]
    2ae0  vmaxps ymm0,ymm2,ymm0
    2ae4  add rbx,4
    2ae8  dec r10
    2aeb  jmp short 0000000000002AD4h
    2aed  vpxor ymm4,ymm4,ymm4
    2af1  vpxor ymm5,ymm5,ymm5
    2af5  vpxor ymm6,ymm6,ymm6
    2af9  vpxor ymm7,ymm7,ymm7
    2afd  vpxor ymm1,ymm1,ymm1
    2b01  mov r10,r9
    2b04  mov r11,rdi
    2b07  xor rbx,rbx
    2b0a  cmp r10,1
    2b0e  jl near 0000000000002BD7h
    2b14  vbroadcastss ymm2,[rsi+rbx]
    2b1a  vsubps ymm2,ymm2,ymm0
    2b1e  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2b27  vminps ymm2,ymm2,[rbp]
    2b2c  vmovups ymm12,[rbp+20h]
    2b31  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2b37  vsubps ymm13,ymm12,[rbp+40h]
    2b3c  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2b42  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2b4b  vmovups ymm13,[rbp+0C0h]
    2b53  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2b5c  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2b65  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2b6e  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2b77  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2b80  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2b89  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2b92  vpslld ymm12,ymm12,17h
    2b98  vpaddd ymm13,ymm13,ymm12
    2b9d  vandnps ymm2,ymm14,ymm13
    2ba2  vbroadcastss ymm3,[rdx+rbx]
    2ba8  vfmadd231ps ymm1,ymm2,ymm3
    2bad  vfmadd231ps ymm4,ymm2,[r11]
    2bb2  vfmadd231ps ymm5,ymm2,[r11+20h]
    2bb8  vfmadd231ps ymm6,ymm2,[r11+40h]
    2bbe  vfmadd231ps ymm7,ymm2,[r11+60h]
    2bc4  add rbx,4
    2bc8  add r11,80h
    2bcf  dec r10
    2bd2  jmp 0000000000002B0Ah
    2bd7  vbroadcastss ymm2,[rcx]
    2bdc  vsubps ymm2,ymm2,ymm0
    2be0  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2be9  vminps ymm2,ymm2,[rbp]
    2bee  vmovups ymm12,[rbp+20h]
    2bf3  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2bf9  vsubps ymm13,ymm12,[rbp+40h]
    2bfe  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2c04  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2c0d  vmovups ymm13,[rbp+0C0h]
    2c15  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2c1e  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2c27  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2c30  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2c39  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2c42  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2c4b  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2c54  vpslld ymm12,ymm12,17h
    2c5a  vpaddd ymm13,ymm13,ymm12
    2c5f  vandnps ymm2,ymm14,ymm13
    2c64  vaddps ymm1,ymm1,ymm2
    2c68  vdivps ymm4,ymm4,ymm1
    2c6c  vmovups [r8],ymm4
    2c71  vdivps ymm5,ymm5,ymm1
    2c75  vmovups [r8+20h],ymm5
    2c7b  vdivps ymm6,ymm6,ymm1
    2c7f  vmovups [r8+40h],ymm6
    2c85  vdivps ymm7,ymm7,ymm1
    2c89  vmovups [r8+60h],ymm7
    2c8f  vzeroupper
    2c92  pop rbp
    2c93  pop rbx
    2c94  ret
    2c95  add [rax],al
    2c97  mov al,42h
    2c99  add [rax],al
    2c9b  mov al,42h
    2c9d  add [rax],al
    2c9f  mov al,42h
    2ca1  add [rax],al
    2ca3  mov al,42h
    2ca5  add [rax],al
    2ca7  mov al,42h
    2ca9  add [rax],al
    2cab  mov al,42h
    2cad  add [rax],al
    2caf  mov al,42h
    2cb1  add [rax],al
    2cb3  mov al,42h
    2cb5  cmp ebp,[rdx-55C4C048h]
    2cbb  mov eax,0B8AA3B3Fh
    2cc0  (bad)
    2cc2  stosb
    2cc3  mov eax,0B8AA3B3Fh
    2cc8  (bad)
    2cca  stosb
    2ccb  mov eax,0B8AA3B3Fh
    2cd0  (bad)
    2cd2  stosb
    2cd3  mov eax,4000003Fh
    2cd8  add [r8],al
    2cdb  add [r8],al
    2cdf  add [r8],al
    2ce3  add [r8],al
    2ce7  add [r8],al
    2ceb  add [r8],al
    2cef  add [r8],al
    2cf3  add [r10+31h],sil
    2cf8  mov edi,0BF317200h
    2cfd  add [rdx+31h],dh
    2d00  mov edi,0BF317200h
    2d05  add [rdx+31h],dh
    2d08  mov edi,0BF317200h
    2d0d  add [rdx+31h],dh
    2d10  mov edi,0BF317200h
    2d15  (bad)
    2d1b  mov edi,0BFBE8EB5h
    2d20  mov ch,8Eh
    2d22  mov esi,0BE8EB5BFh
    2d27  mov edi,0BFBE8EB5h
    2d2c  mov ch,8Eh
    2d2e  mov esi,0BE8EB5BFh
    2d33  mov edi,0AE0000B5h
    2d38  ret 0
    2d3b  scasb
    2d3c  ret 0
    2d3f  scasb
    2d40  ret 0
    2d43  scasb
    2d44  ret 0
    2d47  scasb
    2d48  ret 0
    2d4b  scasb
    2d4c  ret 0
    2d4f  scasb
    2d50  ret 0
    2d53  scasb
    2d54  ret 6967h
    2d57  push rax
    2d58  cmp [rdi+69h],esp
    2d5b  push rax
    2d5c  cmp [rdi+69h],esp
    2d5f  push rax
    2d60  cmp [rdi+69h],esp
    2d63  push rax
    2d64  cmp [rdi+69h],esp
    2d67  push rax
    2d68  cmp [rdi+69h],esp
    2d6b  push rax
    2d6c  cmp [rdi+69h],esp
    2d6f  push rax
    2d70  cmp [rdi+69h],esp
    2d73  push rax
    2d74  cmp esi,ecx
    2d76  mov r15b,3Ah
    2d79  (bad)
    2d7b  mov bh,3Ah
    2d7d  (bad)
    2d7f  mov bh,3Ah
    2d81  (bad)
    2d83  mov bh,3Ah
    2d85  (bad)
    2d87  mov bh,3Ah
    2d89  (bad)
    2d8b  mov bh,3Ah
    2d8d  (bad)
    2d8f  mov bh,3Ah
    2d91  (bad)
    2d93  mov bh,3Ah
    2d95  or [rcx-76F7C3F8h],cl
    2d9b  or [rax+rcx],bh
    2d9e  mov [rax],ecx
    2da0  cmp al,8
    2da2  mov [rax],ecx
    2da4  cmp al,8
    2da6  mov [rax],ecx
    2da8  cmp al,8
    2daa  mov [rax],ecx
    2dac  cmp al,8
    2dae  mov [rax],ecx
    2db0  cmp al,8
    2db2  mov [rax],ecx
    2db4  cmp al,0C1h
    2db6  test eax,0A9C13D2Ah
    2dbb  sub bh,[rel 3D2AD782h]
    2dc1  shr dword [rcx-563EC2D6h],2Ah
    2dc8  cmp eax,3D2AA9C1h
    2dcd  shr dword [rcx-563EC2D6h],2Ah
    2dd4  cmp eax,3E2AAAAAh
    2dd9  stosb
    2dda  stosb
    2ddb  sub bh,[rsi]
    2ddd  stosb
    2dde  stosb
    2ddf  sub bh,[rsi]
    2de1  stosb
    2de2  stosb
    2de3  sub bh,[rsi]
    2de5  stosb
    2de6  stosb
    2de7  sub bh,[rsi]
    2de9  stosb
    2dea  stosb
    2deb  sub bh,[rsi]
    2ded  stosb
    2dee  stosb
    2def  sub bh,[rsi]
    2df1  stosb
    2df2  stosb
    2df3  sub bh,[rsi]
    2df5  add [rax],al
    2df7  add [rdi],bh
    2df9  add [rax],al
    2dfb  add [rdi],bh
    2dfd  add [rax],al
    2dff  add [rdi],bh
    2e01  add [rax],al
    2e03  add [rdi],bh
    2e05  add [rax],al
    2e07  add [rdi],bh
    2e09  add [rax],al
    2e0b  add [rdi],bh
    2e0d  add [rax],al
    2e0f  add [rdi],bh
    2e11  add [rax],al
    2e13  add [rdi],bh
    2e15  add [rax],al
    2e17  cmp byte [rdi],0
    2e1a  add [rax-7FFFFFC1h],al
    2e20  (bad)
    2e22  add [rax-7FFFFFC1h],al
    2e28  (bad)
    2e2a  add [rax-7FFFFFC1h],al
    2e30  (bad)
    2e32  add [rax-7FFFFFC1h],al
    2e38  (bad)
    2e3a  add [rax-7FFFFFC1h],al
    2e40  (bad)
    2e42  add [rax-7FFFFFC1h],al
    2e48  (bad)
    2e4a  add [rax-7FFFFFC1h],al
    2e50  (bad)
    2e52  add [rax-7FFFFFC1h],al
    2e58  inc dword [rax]
    2e5a  add [rax-7FFFFF01h],al
    2e60  inc dword [rax]
    2e62  add [rax-7FFFFF01h],al
    2e68  inc dword [rax]
    2e6a  add [rax-7FFFFF01h],al
    2e70  inc dword [rax]
    2e72  add [rax+0FFh],al
    2e78  add [rcx],al
    2e7a  add [rax],al
    2e7c  add [rdx],al
    2e7e  add [rax],al
    2e80  add [rbx],al
    2e82  add [rax],al
    2e84  add [rax+rax],al
    2e87  add [rax],al
    2e89  add eax,6000000h
    2e8e  add [rax],al
    2e90  add [rdi],al
    2e92  add [rax],al
    2e94  add [rax],cl
    2e96  add [rax],al
    2e98  add [rcx],cl
    2e9a  add [rax],al
    2e9c  add [rdx],cl
    2e9e  add [rax],al
    2ea0  add [rbx],cl
    2ea2  add [rax],al
    2ea4  add [rax+rax],cl
    2ea7  add [rax],al
    2ea9  or eax,0E000000h
    2eae  add [rax],al
    2eb0  add [rdi],cl
    2eb2  add [rax],al
    2eb4  (bad)

map_n32_1e3898d682e799f0:
    2ec0  lea rax,[rel 3191h]
    2ec7  vbroadcastss ymm13,[rax]
    2ecc  vbroadcastss ymm12,[rax+20h]
    2ed2  vbroadcastss ymm11,[rax+40h]
    2ed8  vbroadcastss ymm10,[rax+60h]
    2ede  vbroadcastss ymm9,[rax+80h]
    2ee7  vbroadcastss ymm8,[rax+0A0h]
    2ef0  vbroadcastss ymm7,[rax+0C0h]
    2ef9  vbroadcastss ymm15,[rax+0E0h]
    2f02  vbroadcastss ymm6,[rax+100h]
    2f0b  vbroadcastss ymm5,[rax+120h]
    2f14  vbroadcastss ymm14,[rax+140h]
    2f1d  test rcx,rcx
    2f20  je near 000000000000318Dh
    2f26  vmovups ymm0,[rsi]
    2f2a  vminps ymm0,ymm0,ymm5
    2f2e  vsubps ymm1,ymm13,ymm0
    2f32  vminps ymm2,ymm1,[rax+160h]
    2f3a  vmovups ymm3,ymm14
    2f3f  vfmadd231ps ymm3,ymm2,ymm6
    2f44  vsubps ymm4,ymm3,ymm14
    2f49  vfmadd231ps ymm2,ymm4,[rax+180h]
    2f52  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    2f5b  vmovups ymm4,ymm11
    2f60  vfmadd231ps ymm4,ymm12,ymm2
    2f65  vfmadd213ps ymm4,ymm2,ymm10
    2f6a  vfmadd213ps ymm4,ymm2,ymm9
    2f6f  vfmadd213ps ymm4,ymm2,ymm8
    2f74  vfmadd213ps ymm4,ymm2,ymm7
    2f79  vfmadd213ps ymm4,ymm2,ymm15
    2f7e  vfmadd213ps ymm4,ymm2,ymm15
    2f83  vpslld ymm2,ymm3,17h
    2f88  vpaddd ymm2,ymm2,ymm4
    2f8c  vcmpnltps ymm3,ymm1,[rax+1C0h]
    2f95  vpand ymm3,ymm3,ymm2
    2f99  vaddps ymm1,ymm15,ymm3
    2f9d  vdivps ymm1,ymm15,ymm1
    2fa1  vmulps ymm0,ymm0,ymm1
    2fa5  vmovups ymm1,[rdx]
    2fa9  vaddps ymm1,ymm1,ymm15
    2fae  vmulps ymm0,ymm0,ymm1
    2fb2  vmovups [rdi],ymm0
    2fb6  vmovups ymm0,[rsi+20h]
    2fbb  vminps ymm0,ymm0,ymm5
    2fbf  vsubps ymm1,ymm13,ymm0
    2fc3  vminps ymm2,ymm1,[rax+160h]
    2fcb  vmovups ymm3,ymm14
    2fd0  vfmadd231ps ymm3,ymm2,ymm6
    2fd5  vsubps ymm4,ymm3,ymm14
    2fda  vfmadd231ps ymm2,ymm4,[rax+180h]
    2fe3  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    2fec  vmovups ymm4,ymm11
    2ff1  vfmadd231ps ymm4,ymm12,ymm2
    2ff6  vfmadd213ps ymm4,ymm2,ymm10
    2ffb  vfmadd213ps ymm4,ymm2,ymm9
    3000  vfmadd213ps ymm4,ymm2,ymm8
    3005  vfmadd213ps ymm4,ymm2,ymm7
    300a  vfmadd213ps ymm4,ymm2,ymm15
    300f  vfmadd213ps ymm4,ymm2,ymm15
    3014  vpslld ymm2,ymm3,17h
    3019  vpaddd ymm2,ymm2,ymm4
    301d  vcmpnltps ymm3,ymm1,[rax+1C0h]
    3026  vpand ymm3,ymm3,ymm2
    302a  vaddps ymm1,ymm15,ymm3
    302e  vdivps ymm1,ymm15,ymm1
    3032  vmulps ymm0,ymm0,ymm1
    3036  vmovups ymm1,[rdx+20h]
    303b  vaddps ymm1,ymm1,ymm15
    3040  vmulps ymm0,ymm0,ymm1
    3044  vmovups [rdi+20h],ymm0
    3049  vmovups ymm0,[rsi+40h]
    304e  vminps ymm0,ymm0,ymm5
    3052  vsubps ymm1,ymm13,ymm0
    3056  vminps ymm2,ymm1,[rax+160h]
    305e  vmovups ymm3,ymm14
    3063  vfmadd231ps ymm3,ymm2,ymm6
    3068  vsubps ymm4,ymm3,ymm14
    306d  vfmadd231ps ymm2,ymm4,[rax+180h]
    3076  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    307f  vmovups ymm4,ymm11
    3084  vfmadd231ps ymm4,ymm12,ymm2
    3089  vfmadd213ps ymm4,ymm2,ymm10
    308e  vfmadd213ps ymm4,ymm2,ymm9
    3093  vfmadd213ps ymm4,ymm2,ymm8
    3098  vfmadd213ps ymm4,ymm2,ymm7
    309d  vfmadd213ps ymm4,ymm2,ymm15
    30a2  vfmadd213ps ymm4,ymm2,ymm15
    30a7  vpslld ymm2,ymm3,17h
    30ac  vpaddd ymm2,ymm2,ymm4
    30b0  vcmpnltps ymm3,ymm1,[rax+1C0h]
    30b9  vpand ymm3,ymm3,ymm2
    30bd  vaddps ymm1,ymm15,ymm3
    30c1  vdivps ymm1,ymm15,ymm1
    30c5  vmulps ymm0,ymm0,ymm1
    30c9  vmovups ymm1,[rdx+40h]
    30ce  vaddps ymm1,ymm1,ymm15
    30d3  vmulps ymm0,ymm0,ymm1
    30d7  vmovups [rdi+40h],ymm0
    30dc  vmovups ymm0,[rsi+60h]
    30e1  vminps ymm0,ymm0,ymm5
    30e5  vsubps ymm1,ymm13,ymm0
    30e9  vminps ymm2,ymm1,[rax+160h]
    30f1  vmovups ymm3,ymm14
    30f6  vfmadd231ps ymm3,ymm2,ymm6
    30fb  vsubps ymm4,ymm3,ymm14
    3100  vfmadd231ps ymm2,ymm4,[rax+180h]
    3109  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    3112  vmovups ymm4,ymm11
    3117  vfmadd231ps ymm4,ymm12,ymm2
    311c  vfmadd213ps ymm4,ymm2,ymm10
    3121  vfmadd213ps ymm4,ymm2,ymm9
    3126  vfmadd213ps ymm4,ymm2,ymm8
    312b  vfmadd213ps ymm4,ymm2,ymm7
    3130  vfmadd213ps ymm4,ymm2,ymm15
    3135  vfmadd213ps ymm4,ymm2,ymm15
    313a  vpslld ymm2,ymm3,17h
    313f  vpaddd ymm2,ymm2,ymm4
    3143  vcmpnltps ymm3,ymm1,[rax+1C0h]
    314c  vpand ymm3,ymm3,ymm2
    3150  vaddps ymm1,ymm15,ymm3
    3154  vdivps ymm1,ymm15,ymm1
    3158  vmulps ymm0,ymm0,ymm1
    315c  vmovups ymm1,[rdx+60h]
    3161  vaddps ymm1,ymm1,ymm15
    3166  vmulps ymm0,ymm0,ymm1
    316a  vmovups [rdi+60h],ymm0
    316f  add rdi,100h
    3176  add rsi,100h
    317d  add rdx,100h
    3184  dec rcx
    3187  jne near 0000000000002F26h
    318d  vzeroupper
    3190  ret
    3191  add [rax],al
    3193  add [rax],al
    3195  add [rax],al
    3197  add [rax],al
    3199  add [rax],al
    319b  add [rax],al
    319d  add [rax],al
    319f  add [rax],al
    31a1  add [rax],al
    31a3  add [rax],al
    31a5  add [rax],al
    31a7  add [rax],al
    31a9  add [rax],al
    31ab  add [rax],al
    31ad  add [rax],al
    31af  add [rax],al
    31b1  imul edx,[eax+39h],39506967h
    31b9  imul edx,[eax+39h],39506967h
    31c1  imul edx,[eax+39h],39506967h
    31c9  imul edx,[eax+39h],39506967h
    31d1  (bad)
    31d3  mov bh,3Ah
    31d5  (bad)
    31d7  mov bh,3Ah
    31d9  (bad)
    31db  mov bh,3Ah
    31dd  (bad)
    31df  mov bh,3Ah
    31e1  (bad)
    31e3  mov bh,3Ah
    31e5  (bad)
    31e7  mov bh,3Ah
    31e9  (bad)
    31eb  mov bh,3Ah
    31ed  (bad)
    31ef  mov bh,3Ah
    31f1  or [rcx-76F7C3F8h],cl
    31f7  or [rax+rcx],bh
    31fa  mov [rax],ecx
    31fc  cmp al,8
    31fe  mov [rax],ecx
    3200  cmp al,8
    3202  mov [rax],ecx
    3204  cmp al,8
    3206  mov [rax],ecx
    3208  cmp al,8
    320a  mov [rax],ecx
    320c  cmp al,8
    320e  mov [rax],ecx
    3210  cmp al,0C1h
    3212  test eax,0A9C13D2Ah
    3217  sub bh,[rel 3D2ADBDEh]
    321d  shr dword [rcx-563EC2D6h],2Ah
    3224  cmp eax,3D2AA9C1h
    3229  shr dword [rcx-563EC2D6h],2Ah
    3230  cmp eax,3E2AAAAAh
    3235  stosb
    3236  stosb
    3237  sub bh,[rsi]
    3239  stosb
    323a  stosb
    323b  sub bh,[rsi]
    323d  stosb
    323e  stosb
    323f  sub bh,[rsi]
    3241  stosb
    3242  stosb
    3243  sub bh,[rsi]
    3245  stosb
    3246  stosb
    3247  sub bh,[rsi]
    3249  stosb
    324a  stosb
    324b  sub bh,[rsi]
    324d  stosb
    324e  stosb
    324f  sub bh,[rsi]
    3251  add [rax],al
    3253  add [rdi],bh
    3255  add [rax],al
    3257  add [rdi],bh
    3259  add [rax],al
    325b  add [rdi],bh
    325d  add [rax],al
    325f  add [rdi],bh
    3261  add [rax],al
    3263  add [rdi],bh
    3265  add [rax],al
    3267  add [rdi],bh
    3269  add [rax],al
    326b  add [rdi],bh
    326d  add [rax],al
    326f  add [rdi],bh
    3271  add [rax],al
    3273  cmp byte [rdi],0
    3276  add [rax-7FFFFFC1h],al
    327c  (bad)
    327e  add [rax-7FFFFFC1h],al
    3284  (bad)
    3286  add [rax-7FFFFFC1h],al
    328c  (bad)
    328e  add [rax-4755C4C1h],al
    3294  (bad)
    3296  stosb
    3297  mov eax,0B8AA3B3Fh
    329c  (bad)
    329e  stosb
    329f  mov eax,0B8AA3B3Fh
    32a4  (bad)
    32a6  stosb
    32a7  mov eax,0B8AA3B3Fh
    32ac  (bad)
    32ae  stosb
    32af  mov eax,0E000003Fh
    32b4  add [rax],al
    32b7  loopne 00000000000032F9h
    32b9  add [rax],al
    32bb  loopne 00000000000032FDh
    32bd  add [rax],al
    32bf  loopne 0000000000003301h
    32c1  add [rax],al
    32c3  loopne 0000000000003305h
    32c5  add [rax],al
    32c7  loopne 0000000000003309h
    32c9  add [rax],al
    32cb  loopne 000000000000330Dh
    32cd  add [rax],al
    32cf  loopne 0000000000003311h
    32d1  add [rax],al
    32d3  add [r8],al
    32d7  add [r8],al
    32db  add [r8],al
    32df  add [r8],al
    32e3  add [r8],al
    32e7  add [r8],al
    32eb  add [r8],al
    32ef  add [r8],al
    32f3  mov al,42h
    32f5  add [rax],al
    32f7  mov al,42h
    32f9  add [rax],al
    32fb  mov al,42h
    32fd  add [rax],al
    32ff  mov al,42h
    3301  add [rax],al
    3303  mov al,42h
    3305  add [rax],al
    3307  mov al,42h
    3309  add [rax],al
    330b  mov al,42h
    330d  add [rax],al
    330f  mov al,42h
    3311  add [rdx+31h],dh
    3314  mov edi,0BF317200h
    3319  add [rdx+31h],dh
    331c  mov edi,0BF317200h
    3321  add [rdx+31h],dh
    3324  mov edi,0BF317200h
    3329  add [rdx+31h],dh
    332c  mov edi,0BF317200h
    3331  (bad)
    3337  mov edi,0BFBE8EB5h
    333c  mov ch,8Eh
    333e  mov esi,0BE8EB5BFh
    3343  mov edi,0BFBE8EB5h
    3348  mov ch,8Eh
    334a  mov esi,0BE8EB5BFh
    334f  mov edi,0AE0000B5h
    3354  ret 0
    3357  scasb
    3358  ret 0
    335b  scasb
    335c  ret 0
    335f  scasb
    3360  ret 0
    3363  scasb
    3364  ret 0
    3367  scasb
    3368  ret 0
    336b  scasb
    336c  ret 0
    336f  scasb
    3370  (bad)

quantize_q8:
    3380  lea rax,[rel 34E9h]
    3387  vpxor ymm15,ymm15,ymm15
    338c  vpbroadcastd ymm14,[rax+4]
    3392  vpbroadcastd ymm13,[rax]
    3397  vpbroadcastd ymm12,[rax+8]
    339d  vpbroadcastd ymm11,[rax+0Ch]
    33a3  vpbroadcastd ymm10,[rax+10h]
    33a9  vmovdqu ymm9,[rax+14h]
    33ae  test r8,r8
    33b1  je near 00000000000034E5h
    33b7  vmovups ymm0,[rdi]
    33bb  vpand ymm4,ymm0,ymm13
    33c0  vmovups ymm1,[rdi+20h]
    33c5  vpand ymm5,ymm1,ymm13
    33ca  vpmaxsd ymm4,ymm4,ymm5
    33cf  vmovups ymm2,[rdi+40h]
    33d4  vpand ymm5,ymm2,ymm13
    33d9  vpmaxsd ymm4,ymm4,ymm5
    33de  vmovups ymm3,[rdi+60h]
    33e3  vpand ymm5,ymm3,ymm13
    33e8  vpmaxsd ymm4,ymm4,ymm5
    33ed  vextracti128 xmm5,ymm4,1
    33f3  vpmaxsd xmm4,xmm4,xmm5
    33f8  vpshufd xmm5,xmm4,4Eh
    33fd  vpmaxsd xmm4,xmm4,xmm5
    3402  vpshufd xmm5,xmm4,0B1h
    3407  vpmaxsd xmm4,xmm4,xmm5
    340c  vdivss xmm5,xmm4,xmm14
    3411  vmovss [rdx],xmm5
    3415  vcmpneqps xmm5,xmm4,xmm15
    341b  vdivps xmm4,xmm14,xmm4
    341f  vandps xmm4,xmm4,xmm5
    3423  vbroadcastss ymm4,xmm4
    3428  vmulps ymm0,ymm0,ymm4
    342c  vaddps ymm0,ymm0,ymm12
    3431  vpsubd ymm0,ymm0,ymm12
    3436  vpmaxsd ymm0,ymm0,ymm11
    343b  vpminsd ymm0,ymm0,ymm10
    3440  vmulps ymm1,ymm1,ymm4
    3444  vaddps ymm1,ymm1,ymm12
    3449  vpsubd ymm1,ymm1,ymm12
    344e  vpmaxsd ymm1,ymm1,ymm11
    3453  vpminsd ymm1,ymm1,ymm10
    3458  vmulps ymm2,ymm2,ymm4
    345c  vaddps ymm2,ymm2,ymm12
    3461  vpsubd ymm2,ymm2,ymm12
    3466  vpmaxsd ymm2,ymm2,ymm11
    346b  vpminsd ymm2,ymm2,ymm10
    3470  vmulps ymm3,ymm3,ymm4
    3474  vaddps ymm3,ymm3,ymm12
    3479  vpsubd ymm3,ymm3,ymm12
    347e  vpmaxsd ymm3,ymm3,ymm11
    3483  vpminsd ymm3,ymm3,ymm10
    3488  vpaddd ymm4,ymm0,ymm1
    348c  vpaddd ymm5,ymm2,ymm3
    3490  vpaddd ymm4,ymm4,ymm5
    3494  vpackssdw ymm0,ymm0,ymm1
    3498  vpackssdw ymm2,ymm2,ymm3
    349c  vpacksswb ymm0,ymm0,ymm2
    34a0  vpermd ymm0,ymm9,ymm0
    34a5  vmovdqu [rsi],ymm0
    34a9  vextracti128 xmm5,ymm4,1
    34af  vpaddd xmm4,xmm4,xmm5
    34b3  vpshufd xmm5,xmm4,4Eh
    34b8  vpaddd xmm4,xmm4,xmm5
    34bc  vpshufd xmm5,xmm4,0B1h
    34c1  vpaddd xmm4,xmm4,xmm5
    34c5  vmovd [rcx],xmm4
    34c9  add rdi,80h
    34d0  add rsi,20h
    34d4  add rdx,4
    34d8  add rcx,4
    34dc  dec r8
    34df  jne near 00000000000033B7h
    34e5  vzeroupper
    34e8  ret
    34e9  (bad)
    34eb  (bad)
    34ed  add [rax],al
    34ef  inc byte [rdx]
    34f2  add [rax+4Bh],al
    34f5  cmp bh,0FFh
    34f8  (bad)
    34fa  add [rax],al
    34fc  add [rax],al
    34fe  add [rax],al
    3500  add [rax+rax],al
    3503  add [rax],al
    3505  add [rax],eax
    3507  add [rax],al
    3509  add eax,2000000h
    350e  add [rax],al
    3510  add [rsi],al
    3512  add [rax],al
    3514  add [rbx],al
    3516  add [rax],al
    3518  add [rdi],al
    351a  add [rax],al
    351c  (bad)

dot_adjacent_mxfp4_q8_k64_t1_pairs:
    3540  push rcx
    3541  push rdx
    3542  mov rax,rsi
    3545  mov r9,[rax]
    3548  lea r10,[rel 4053h]
    354f  vpbroadcastd ymm0,[r10]
    3554  vbroadcasti128 ymm1,[r10+18h]
    355a  sub rsp,180h
    3561  vpbroadcastd ymm6,[r10+8]
    3567  vmovdqu [rsp+120h],ymm6
    3570  vpbroadcastd ymm6,[r10+0Ch]
    3576  vmovdqu [rsp+140h],ymm6
    357f  vpbroadcastd ymm6,[r10+10h]
    3585  vmovdqu [rsp+160h],ymm6
    358e  vpxor ymm7,ymm7,ymm7
    3592  vmovups [rsp],ymm7
    3597  vmovups [rsp+20h],ymm7
    359d  vmovups [rsp+40h],ymm7
    35a3  vmovups [rsp+60h],ymm7
    35a9  vmovups [rsp+80h],ymm7
    35b2  vmovups [rsp+0A0h],ymm7
    35bb  vmovups [rsp+0C0h],ymm7
    35c4  vmovups [rsp+0E0h],ymm7
    35cd  lea rsi,[rdi+40h]
    35d1  lea rdx,[rsi+200h]
    35d8  lea rcx,[rdi+900h]
    35df  xor r8,r8
    35e2  cmp r8,0
    35e6  jne short 00000000000035EFh
    35e8  lea rdx,[rsi+900h]
    35ef  test r8,0Ch
    35f6  jne short 0000000000003614h
    35f8  prefetcht1 [rcx]
    35fb  prefetcht1 [rcx+240h]
    3602  prefetcht1 [rcx+480h]
    3609  prefetcht1 [rcx+6C0h]
    3610  add rcx,40h
    3614  vpbroadcastd ymm3,[r10+14h]
    361a  vpbroadcastd ymm2,[r9+r8+48h]
    3621  vpmulld ymm2,ymm2,ymm3
    3626  vmovdqu [rsp+100h],ymm2
    362f  vpbroadcastd ymm4,[r9+r8*8]
    3635  vpbroadcastd ymm5,[r9+r8*8+4]
    363c  prefetcht1 [rdx]
    363f  vmovdqu ymm2,[rsi]
    3643  vpsrlw ymm3,ymm2,4
    3648  vpand ymm2,ymm2,ymm0
    364c  vpand ymm3,ymm3,ymm0
    3650  vpshufb ymm2,ymm1,ymm2
    3655  vpshufb ymm3,ymm1,ymm3
    365a  vpmaddubsw ymm10,ymm2,ymm4
    365f  vpmaddubsw ymm3,ymm3,ymm5
    3664  vpaddw ymm10,ymm10,ymm3
    3668  vmovdqu ymm2,[rsi+20h]
    366d  vpsrlw ymm3,ymm2,4
    3672  vpand ymm2,ymm2,ymm0
    3676  vpand ymm3,ymm3,ymm0
    367a  vpshufb ymm2,ymm1,ymm2
    367f  vpshufb ymm3,ymm1,ymm3
    3684  vpmaddubsw ymm11,ymm2,ymm4
    3689  vpmaddubsw ymm3,ymm3,ymm5
    368e  vpaddw ymm11,ymm11,ymm3
    3692  prefetcht1 [rdx+240h]
    3699  vmovdqu ymm2,[rsi+240h]
    36a1  vpsrlw ymm3,ymm2,4
    36a6  vpand ymm2,ymm2,ymm0
    36aa  vpand ymm3,ymm3,ymm0
    36ae  vpshufb ymm2,ymm1,ymm2
    36b3  vpshufb ymm3,ymm1,ymm3
    36b8  vpmaddubsw ymm12,ymm2,ymm4
    36bd  vpmaddubsw ymm3,ymm3,ymm5
    36c2  vpaddw ymm12,ymm12,ymm3
    36c6  vmovdqu ymm2,[rsi+260h]
    36ce  vpsrlw ymm3,ymm2,4
    36d3  vpand ymm2,ymm2,ymm0
    36d7  vpand ymm3,ymm3,ymm0
    36db  vpshufb ymm2,ymm1,ymm2
    36e0  vpshufb ymm3,ymm1,ymm3
    36e5  vpmaddubsw ymm13,ymm2,ymm4
    36ea  vpmaddubsw ymm3,ymm3,ymm5
    36ef  vpaddw ymm13,ymm13,ymm3
    36f3  vpbroadcastd ymm4,[r9+r8*8+8]
    36fa  vpbroadcastd ymm5,[r9+r8*8+0Ch]
    3701  prefetcht1 [rdx+480h]
    3708  vmovdqu ymm2,[rsi+40h]
    370d  vpsrlw ymm3,ymm2,4
    3712  vpand ymm2,ymm2,ymm0
    3716  vpand ymm3,ymm3,ymm0
    371a  vpshufb ymm2,ymm1,ymm2
    371f  vpshufb ymm3,ymm1,ymm3
    3724  vpmaddubsw ymm2,ymm2,ymm4
    3729  vpmaddubsw ymm3,ymm3,ymm5
    372e  vpaddw ymm10,ymm10,ymm2
    3732  vpaddw ymm10,ymm10,ymm3
    3736  vpmaddwd ymm6,ymm10,[rsp+120h]
    373f  vpaddd ymm6,ymm6,[rsp+100h]
    3748  vmovdqu ymm2,[rsi+60h]
    374d  vpsrlw ymm3,ymm2,4
    3752  vpand ymm2,ymm2,ymm0
    3756  vpand ymm3,ymm3,ymm0
    375a  vpshufb ymm2,ymm1,ymm2
    375f  vpshufb ymm3,ymm1,ymm3
    3764  vpmaddubsw ymm2,ymm2,ymm4
    3769  vpmaddubsw ymm3,ymm3,ymm5
    376e  vpaddw ymm11,ymm11,ymm2
    3772  vpaddw ymm11,ymm11,ymm3
    3776  vpmaddwd ymm7,ymm11,[rsp+120h]
    377f  vpaddd ymm7,ymm7,[rsp+100h]
    3788  prefetcht1 [rdx+6C0h]
    378f  vmovdqu ymm2,[rsi+280h]
    3797  vpsrlw ymm3,ymm2,4
    379c  vpand ymm2,ymm2,ymm0
    37a0  vpand ymm3,ymm3,ymm0
    37a4  vpshufb ymm2,ymm1,ymm2
    37a9  vpshufb ymm3,ymm1,ymm3
    37ae  vpmaddubsw ymm2,ymm2,ymm4
    37b3  vpmaddubsw ymm3,ymm3,ymm5
    37b8  vpaddw ymm12,ymm12,ymm2
    37bc  vpaddw ymm12,ymm12,ymm3
    37c0  vpmaddwd ymm8,ymm12,[rsp+120h]
    37c9  vpaddd ymm8,ymm8,[rsp+100h]
    37d2  vmovdqu ymm2,[rsi+2A0h]
    37da  vpsrlw ymm3,ymm2,4
    37df  vpand ymm2,ymm2,ymm0
    37e3  vpand ymm3,ymm3,ymm0
    37e7  vpshufb ymm2,ymm1,ymm2
    37ec  vpshufb ymm3,ymm1,ymm3
    37f1  vpmaddubsw ymm2,ymm2,ymm4
    37f6  vpmaddubsw ymm3,ymm3,ymm5
    37fb  vpaddw ymm13,ymm13,ymm2
    37ff  vpaddw ymm13,ymm13,ymm3
    3803  vpmaddwd ymm9,ymm13,[rsp+120h]
    380c  vpaddd ymm9,ymm9,[rsp+100h]
    3815  vpbroadcastd ymm4,[r9+r8*8+10h]
    381c  vpbroadcastd ymm5,[r9+r8*8+14h]
    3823  prefetcht1 [rdx+40h]
    3827  vmovdqu ymm2,[rsi+80h]
    382f  vpsrlw ymm3,ymm2,4
    3834  vpand ymm2,ymm2,ymm0
    3838  vpand ymm3,ymm3,ymm0
    383c  vpshufb ymm2,ymm1,ymm2
    3841  vpshufb ymm3,ymm1,ymm3
    3846  vpmaddubsw ymm10,ymm2,ymm4
    384b  vpmaddubsw ymm3,ymm3,ymm5
    3850  vpaddw ymm10,ymm10,ymm3
    3854  vmovdqu ymm2,[rsi+0A0h]
    385c  vpsrlw ymm3,ymm2,4
    3861  vpand ymm2,ymm2,ymm0
    3865  vpand ymm3,ymm3,ymm0
    3869  vpshufb ymm2,ymm1,ymm2
    386e  vpshufb ymm3,ymm1,ymm3
    3873  vpmaddubsw ymm11,ymm2,ymm4
    3878  vpmaddubsw ymm3,ymm3,ymm5
    387d  vpaddw ymm11,ymm11,ymm3
    3881  prefetcht1 [rdx+280h]
    3888  vmovdqu ymm2,[rsi+2C0h]
    3890  vpsrlw ymm3,ymm2,4
    3895  vpand ymm2,ymm2,ymm0
    3899  vpand ymm3,ymm3,ymm0
    389d  vpshufb ymm2,ymm1,ymm2
    38a2  vpshufb ymm3,ymm1,ymm3
    38a7  vpmaddubsw ymm12,ymm2,ymm4
    38ac  vpmaddubsw ymm3,ymm3,ymm5
    38b1  vpaddw ymm12,ymm12,ymm3
    38b5  vmovdqu ymm2,[rsi+2E0h]
    38bd  vpsrlw ymm3,ymm2,4
    38c2  vpand ymm2,ymm2,ymm0
    38c6  vpand ymm3,ymm3,ymm0
    38ca  vpshufb ymm2,ymm1,ymm2
    38cf  vpshufb ymm3,ymm1,ymm3
    38d4  vpmaddubsw ymm13,ymm2,ymm4
    38d9  vpmaddubsw ymm3,ymm3,ymm5
    38de  vpaddw ymm13,ymm13,ymm3
    38e2  vpbroadcastd ymm4,[r9+r8*8+18h]
    38e9  vpbroadcastd ymm5,[r9+r8*8+1Ch]
    38f0  prefetcht1 [rdx+4C0h]
    38f7  vmovdqu ymm2,[rsi+0C0h]
    38ff  vpsrlw ymm3,ymm2,4
    3904  vpand ymm2,ymm2,ymm0
    3908  vpand ymm3,ymm3,ymm0
    390c  vpshufb ymm2,ymm1,ymm2
    3911  vpshufb ymm3,ymm1,ymm3
    3916  vpmaddubsw ymm2,ymm2,ymm4
    391b  vpmaddubsw ymm3,ymm3,ymm5
    3920  vpaddw ymm10,ymm10,ymm2
    3924  vpaddw ymm10,ymm10,ymm3
    3928  vpmaddwd ymm10,ymm10,[rsp+120h]
    3931  vpaddd ymm6,ymm6,ymm10
    3936  vmovdqu ymm2,[rsi+0E0h]
    393e  vpsrlw ymm3,ymm2,4
    3943  vpand ymm2,ymm2,ymm0
    3947  vpand ymm3,ymm3,ymm0
    394b  vpshufb ymm2,ymm1,ymm2
    3950  vpshufb ymm3,ymm1,ymm3
    3955  vpmaddubsw ymm2,ymm2,ymm4
    395a  vpmaddubsw ymm3,ymm3,ymm5
    395f  vpaddw ymm11,ymm11,ymm2
    3963  vpaddw ymm11,ymm11,ymm3
    3967  vpmaddwd ymm11,ymm11,[rsp+120h]
    3970  vpaddd ymm7,ymm7,ymm11
    3975  prefetcht1 [rdx+700h]
    397c  vmovdqu ymm2,[rsi+300h]
    3984  vpsrlw ymm3,ymm2,4
    3989  vpand ymm2,ymm2,ymm0
    398d  vpand ymm3,ymm3,ymm0
    3991  vpshufb ymm2,ymm1,ymm2
    3996  vpshufb ymm3,ymm1,ymm3
    399b  vpmaddubsw ymm2,ymm2,ymm4
    39a0  vpmaddubsw ymm3,ymm3,ymm5
    39a5  vpaddw ymm12,ymm12,ymm2
    39a9  vpaddw ymm12,ymm12,ymm3
    39ad  vpmaddwd ymm12,ymm12,[rsp+120h]
    39b6  vpaddd ymm8,ymm8,ymm12
    39bb  vmovdqu ymm2,[rsi+320h]
    39c3  vpsrlw ymm3,ymm2,4
    39c8  vpand ymm2,ymm2,ymm0
    39cc  vpand ymm3,ymm3,ymm0
    39d0  vpshufb ymm2,ymm1,ymm2
    39d5  vpshufb ymm3,ymm1,ymm3
    39da  vpmaddubsw ymm2,ymm2,ymm4
    39df  vpmaddubsw ymm3,ymm3,ymm5
    39e4  vpaddw ymm13,ymm13,ymm2
    39e8  vpaddw ymm13,ymm13,ymm3
    39ec  vpmaddwd ymm13,ymm13,[rsp+120h]
    39f5  vpaddd ymm9,ymm9,ymm13
    39fa  vbroadcastss ymm4,[r9+r8+40h]
    3a01  vpmovzxbd ymm2,[rdi]
    3a06  vpslld ymm2,ymm2,17h
    3a0b  vpmaxud ymm2,ymm2,[rsp+140h]
    3a15  vmulps ymm2,ymm2,[rsp+160h]
    3a1e  vcvtdq2ps ymm6,ymm6
    3a22  vmulps ymm6,ymm6,ymm2
    3a26  vfmadd213ps ymm6,ymm4,[rsp]
    3a2c  vmovups [rsp],ymm6
    3a31  vpmovzxbd ymm2,[rdi+8]
    3a37  vpslld ymm2,ymm2,17h
    3a3c  vpmaxud ymm2,ymm2,[rsp+140h]
    3a46  vmulps ymm2,ymm2,[rsp+160h]
    3a4f  vcvtdq2ps ymm7,ymm7
    3a53  vmulps ymm7,ymm7,ymm2
    3a57  vfmadd213ps ymm7,ymm4,[rsp+20h]
    3a5e  vmovups [rsp+20h],ymm7
    3a64  vpmovzxbd ymm2,[rdi+240h]
    3a6d  vpslld ymm2,ymm2,17h
    3a72  vpmaxud ymm2,ymm2,[rsp+140h]
    3a7c  vmulps ymm2,ymm2,[rsp+160h]
    3a85  vcvtdq2ps ymm8,ymm8
    3a8a  vmulps ymm8,ymm8,ymm2
    3a8e  vfmadd213ps ymm8,ymm4,[rsp+40h]
    3a95  vmovups [rsp+40h],ymm8
    3a9b  vpmovzxbd ymm2,[rdi+248h]
    3aa4  vpslld ymm2,ymm2,17h
    3aa9  vpmaxud ymm2,ymm2,[rsp+140h]
    3ab3  vmulps ymm2,ymm2,[rsp+160h]
    3abc  vcvtdq2ps ymm9,ymm9
    3ac1  vmulps ymm9,ymm9,ymm2
    3ac5  vfmadd213ps ymm9,ymm4,[rsp+60h]
    3acc  vmovups [rsp+60h],ymm9
    3ad2  vpbroadcastd ymm4,[r9+r8*8]
    3ad8  vpbroadcastd ymm5,[r9+r8*8+4]
    3adf  prefetcht1 [rdx+80h]
    3ae6  vmovdqu ymm2,[rsi+480h]
    3aee  vpsrlw ymm3,ymm2,4
    3af3  vpand ymm2,ymm2,ymm0
    3af7  vpand ymm3,ymm3,ymm0
    3afb  vpshufb ymm2,ymm1,ymm2
    3b00  vpshufb ymm3,ymm1,ymm3
    3b05  vpmaddubsw ymm10,ymm2,ymm4
    3b0a  vpmaddubsw ymm3,ymm3,ymm5
    3b0f  vpaddw ymm10,ymm10,ymm3
    3b13  vmovdqu ymm2,[rsi+4A0h]
    3b1b  vpsrlw ymm3,ymm2,4
    3b20  vpand ymm2,ymm2,ymm0
    3b24  vpand ymm3,ymm3,ymm0
    3b28  vpshufb ymm2,ymm1,ymm2
    3b2d  vpshufb ymm3,ymm1,ymm3
    3b32  vpmaddubsw ymm11,ymm2,ymm4
    3b37  vpmaddubsw ymm3,ymm3,ymm5
    3b3c  vpaddw ymm11,ymm11,ymm3
    3b40  prefetcht1 [rdx+2C0h]
    3b47  vmovdqu ymm2,[rsi+6C0h]
    3b4f  vpsrlw ymm3,ymm2,4
    3b54  vpand ymm2,ymm2,ymm0
    3b58  vpand ymm3,ymm3,ymm0
    3b5c  vpshufb ymm2,ymm1,ymm2
    3b61  vpshufb ymm3,ymm1,ymm3
    3b66  vpmaddubsw ymm12,ymm2,ymm4
    3b6b  vpmaddubsw ymm3,ymm3,ymm5
    3b70  vpaddw ymm12,ymm12,ymm3
    3b74  vmovdqu ymm2,[rsi+6E0h]
    3b7c  vpsrlw ymm3,ymm2,4
    3b81  vpand ymm2,ymm2,ymm0
    3b85  vpand ymm3,ymm3,ymm0
    3b89  vpshufb ymm2,ymm1,ymm2
    3b8e  vpshufb ymm3,ymm1,ymm3
    3b93  vpmaddubsw ymm13,ymm2,ymm4
    3b98  vpmaddubsw ymm3,ymm3,ymm5
    3b9d  vpaddw ymm13,ymm13,ymm3
    3ba1  vpbroadcastd ymm4,[r9+r8*8+8]
    3ba8  vpbroadcastd ymm5,[r9+r8*8+0Ch]
    3baf  prefetcht1 [rdx+500h]
    3bb6  vmovdqu ymm2,[rsi+4C0h]
    3bbe  vpsrlw ymm3,ymm2,4
    3bc3  vpand ymm2,ymm2,ymm0
    3bc7  vpand ymm3,ymm3,ymm0
    3bcb  vpshufb ymm2,ymm1,ymm2
    3bd0  vpshufb ymm3,ymm1,ymm3
    3bd5  vpmaddubsw ymm2,ymm2,ymm4
    3bda  vpmaddubsw ymm3,ymm3,ymm5
    3bdf  vpaddw ymm10,ymm10,ymm2
    3be3  vpaddw ymm10,ymm10,ymm3
    3be7  vpmaddwd ymm6,ymm10,[rsp+120h]
    3bf0  vpaddd ymm6,ymm6,[rsp+100h]
    3bf9  vmovdqu ymm2,[rsi+4E0h]
    3c01  vpsrlw ymm3,ymm2,4
    3c06  vpand ymm2,ymm2,ymm0
    3c0a  vpand ymm3,ymm3,ymm0
    3c0e  vpshufb ymm2,ymm1,ymm2
    3c13  vpshufb ymm3,ymm1,ymm3
    3c18  vpmaddubsw ymm2,ymm2,ymm4
    3c1d  vpmaddubsw ymm3,ymm3,ymm5
    3c22  vpaddw ymm11,ymm11,ymm2
    3c26  vpaddw ymm11,ymm11,ymm3
    3c2a  vpmaddwd ymm7,ymm11,[rsp+120h]
    3c33  vpaddd ymm7,ymm7,[rsp+100h]
    3c3c  prefetcht1 [rdx+740h]
    3c43  vmovdqu ymm2,[rsi+700h]
    3c4b  vpsrlw ymm3,ymm2,4
    3c50  vpand ymm2,ymm2,ymm0
    3c54  vpand ymm3,ymm3,ymm0
    3c58  vpshufb ymm2,ymm1,ymm2
    3c5d  vpshufb ymm3,ymm1,ymm3
    3c62  vpmaddubsw ymm2,ymm2,ymm4
    3c67  vpmaddubsw ymm3,ymm3,ymm5
    3c6c  vpaddw ymm12,ymm12,ymm2
    3c70  vpaddw ymm12,ymm12,ymm3
    3c74  vpmaddwd ymm8,ymm12,[rsp+120h]
    3c7d  vpaddd ymm8,ymm8,[rsp+100h]
    3c86  vmovdqu ymm2,[rsi+720h]
    3c8e  vpsrlw ymm3,ymm2,4
    3c93  vpand ymm2,ymm2,ymm0
    3c97  vpand ymm3,ymm3,ymm0
    3c9b  vpshufb ymm2,ymm1,ymm2
    3ca0  vpshufb ymm3,ymm1,ymm3
    3ca5  vpmaddubsw ymm2,ymm2,ymm4
    3caa  vpmaddubsw ymm3,ymm3,ymm5
    3caf  vpaddw ymm13,ymm13,ymm2
    3cb3  vpaddw ymm13,ymm13,ymm3
    3cb7  vpmaddwd ymm9,ymm13,[rsp+120h]
    3cc0  vpaddd ymm9,ymm9,[rsp+100h]
    3cc9  vpbroadcastd ymm4,[r9+r8*8+10h]
    3cd0  vpbroadcastd ymm5,[r9+r8*8+14h]
    3cd7  prefetcht1 [rdx+0C0h]
    3cde  vmovdqu ymm2,[rsi+500h]
    3ce6  vpsrlw ymm3,ymm2,4
    3ceb  vpand ymm2,ymm2,ymm0
    3cef  vpand ymm3,ymm3,ymm0
    3cf3  vpshufb ymm2,ymm1,ymm2
    3cf8  vpshufb ymm3,ymm1,ymm3
    3cfd  vpmaddubsw ymm10,ymm2,ymm4
    3d02  vpmaddubsw ymm3,ymm3,ymm5
    3d07  vpaddw ymm10,ymm10,ymm3
    3d0b  vmovdqu ymm2,[rsi+520h]
    3d13  vpsrlw ymm3,ymm2,4
    3d18  vpand ymm2,ymm2,ymm0
    3d1c  vpand ymm3,ymm3,ymm0
    3d20  vpshufb ymm2,ymm1,ymm2
    3d25  vpshufb ymm3,ymm1,ymm3
    3d2a  vpmaddubsw ymm11,ymm2,ymm4
    3d2f  vpmaddubsw ymm3,ymm3,ymm5
    3d34  vpaddw ymm11,ymm11,ymm3
    3d38  prefetcht1 [rdx+300h]
    3d3f  vmovdqu ymm2,[rsi+740h]
    3d47  vpsrlw ymm3,ymm2,4
    3d4c  vpand ymm2,ymm2,ymm0
    3d50  vpand ymm3,ymm3,ymm0
    3d54  vpshufb ymm2,ymm1,ymm2
    3d59  vpshufb ymm3,ymm1,ymm3
    3d5e  vpmaddubsw ymm12,ymm2,ymm4
    3d63  vpmaddubsw ymm3,ymm3,ymm5
    3d68  vpaddw ymm12,ymm12,ymm3
    3d6c  vmovdqu ymm2,[rsi+760h]
    3d74  vpsrlw ymm3,ymm2,4
    3d79  vpand ymm2,ymm2,ymm0
    3d7d  vpand ymm3,ymm3,ymm0
    3d81  vpshufb ymm2,ymm1,ymm2
    3d86  vpshufb ymm3,ymm1,ymm3
    3d8b  vpmaddubsw ymm13,ymm2,ymm4
    3d90  vpmaddubsw ymm3,ymm3,ymm5
    3d95  vpaddw ymm13,ymm13,ymm3
    3d99  vpbroadcastd ymm4,[r9+r8*8+18h]
    3da0  vpbroadcastd ymm5,[r9+r8*8+1Ch]
    3da7  prefetcht1 [rdx+540h]
    3dae  vmovdqu ymm2,[rsi+540h]
    3db6  vpsrlw ymm3,ymm2,4
    3dbb  vpand ymm2,ymm2,ymm0
    3dbf  vpand ymm3,ymm3,ymm0
    3dc3  vpshufb ymm2,ymm1,ymm2
    3dc8  vpshufb ymm3,ymm1,ymm3
    3dcd  vpmaddubsw ymm2,ymm2,ymm4
    3dd2  vpmaddubsw ymm3,ymm3,ymm5
    3dd7  vpaddw ymm10,ymm10,ymm2
    3ddb  vpaddw ymm10,ymm10,ymm3
    3ddf  vpmaddwd ymm10,ymm10,[rsp+120h]
    3de8  vpaddd ymm6,ymm6,ymm10
    3ded  vmovdqu ymm2,[rsi+560h]
    3df5  vpsrlw ymm3,ymm2,4
    3dfa  vpand ymm2,ymm2,ymm0
    3dfe  vpand ymm3,ymm3,ymm0
    3e02  vpshufb ymm2,ymm1,ymm2
    3e07  vpshufb ymm3,ymm1,ymm3
    3e0c  vpmaddubsw ymm2,ymm2,ymm4
    3e11  vpmaddubsw ymm3,ymm3,ymm5
    3e16  vpaddw ymm11,ymm11,ymm2
    3e1a  vpaddw ymm11,ymm11,ymm3
    3e1e  vpmaddwd ymm11,ymm11,[rsp+120h]
    3e27  vpaddd ymm7,ymm7,ymm11
    3e2c  prefetcht1 [rdx+780h]
    3e33  vmovdqu ymm2,[rsi+780h]
    3e3b  vpsrlw ymm3,ymm2,4
    3e40  vpand ymm2,ymm2,ymm0
    3e44  vpand ymm3,ymm3,ymm0
    3e48  vpshufb ymm2,ymm1,ymm2
    3e4d  vpshufb ymm3,ymm1,ymm3
    3e52  vpmaddubsw ymm2,ymm2,ymm4
    3e57  vpmaddubsw ymm3,ymm3,ymm5
    3e5c  vpaddw ymm12,ymm12,ymm2
    3e60  vpaddw ymm12,ymm12,ymm3
    3e64  vpmaddwd ymm12,ymm12,[rsp+120h]
    3e6d  vpaddd ymm8,ymm8,ymm12
    3e72  vmovdqu ymm2,[rsi+7A0h]
    3e7a  vpsrlw ymm3,ymm2,4
    3e7f  vpand ymm2,ymm2,ymm0
    3e83  vpand ymm3,ymm3,ymm0
    3e87  vpshufb ymm2,ymm1,ymm2
    3e8c  vpshufb ymm3,ymm1,ymm3
    3e91  vpmaddubsw ymm2,ymm2,ymm4
    3e96  vpmaddubsw ymm3,ymm3,ymm5
    3e9b  vpaddw ymm13,ymm13,ymm2
    3e9f  vpaddw ymm13,ymm13,ymm3
    3ea3  vpmaddwd ymm13,ymm13,[rsp+120h]
    3eac  vpaddd ymm9,ymm9,ymm13
    3eb1  vbroadcastss ymm4,[r9+r8+40h]
    3eb8  vpmovzxbd ymm2,[rdi+480h]
    3ec1  vpslld ymm2,ymm2,17h
    3ec6  vpmaxud ymm2,ymm2,[rsp+140h]
    3ed0  vmulps ymm2,ymm2,[rsp+160h]
    3ed9  vcvtdq2ps ymm6,ymm6
    3edd  vmulps ymm6,ymm6,ymm2
    3ee1  vfmadd213ps ymm6,ymm4,[rsp+80h]
    3eeb  vmovups [rsp+80h],ymm6
    3ef4  vpmovzxbd ymm2,[rdi+488h]
    3efd  vpslld ymm2,ymm2,17h
    3f02  vpmaxud ymm2,ymm2,[rsp+140h]
    3f0c  vmulps ymm2,ymm2,[rsp+160h]
    3f15  vcvtdq2ps ymm7,ymm7
    3f19  vmulps ymm7,ymm7,ymm2
    3f1d  vfmadd213ps ymm7,ymm4,[rsp+0A0h]
    3f27  vmovups [rsp+0A0h],ymm7
    3f30  vpmovzxbd ymm2,[rdi+6C0h]
    3f39  vpslld ymm2,ymm2,17h
    3f3e  vpmaxud ymm2,ymm2,[rsp+140h]
    3f48  vmulps ymm2,ymm2,[rsp+160h]
    3f51  vcvtdq2ps ymm8,ymm8
    3f56  vmulps ymm8,ymm8,ymm2
    3f5a  vfmadd213ps ymm8,ymm4,[rsp+0C0h]
    3f64  vmovups [rsp+0C0h],ymm8
    3f6d  vpmovzxbd ymm2,[rdi+6C8h]
    3f76  vpslld ymm2,ymm2,17h
    3f7b  vpmaxud ymm2,ymm2,[rsp+140h]
    3f85  vmulps ymm2,ymm2,[rsp+160h]
    3f8e  vcvtdq2ps ymm9,ymm9
    3f93  vmulps ymm9,ymm9,ymm2
    3f97  vfmadd213ps ymm9,ymm4,[rsp+0E0h]
    3fa1  vmovups [rsp+0E0h],ymm9
    3faa  add rdi,10h
    3fae  add rsi,100h
    3fb5  add rdx,100h
    3fbc  add r8,4
    3fc0  cmp r8,8
    3fc4  jne near 00000000000035E2h
    3fca  mov rsi,[rsp+180h]
    3fd2  mov r8,[rsp+188h]
    3fda  vmovups ymm6,[rsp]
    3fdf  vmovups [rsi],ymm6
    3fe3  vmovups ymm6,[rsp+20h]
    3fe9  vmovups [rsi+20h],ymm6
    3fee  vmovups ymm6,[rsp+80h]
    3ff7  vmovups [rsi+40h],ymm6
    3ffc  vmovups ymm6,[rsp+0A0h]
    4005  vmovups [rsi+60h],ymm6
    400a  vmovups ymm6,[rsp+40h]
    4010  vmovups [rsi+80h],ymm6
    4018  vmovups ymm6,[rsp+60h]
    401e  vmovups [rsi+0A0h],ymm6
    4026  vmovups ymm6,[rsp+0C0h]
    402f  vmovups [rsi+0C0h],ymm6
    4037  vmovups ymm6,[rsp+0E0h]
    4040  vmovups [rsi+0E0h],ymm6
    4048  add rsp,190h
    404f  vzeroupper
    4052  ret
    4053  (bad)
    4057  add byte [rax+18080h],1
    405e  add [rax],al
    4060  add [rax],al
    4063  add [rax],al
    4065  add [rdi],bh
    4067  hlt
    4068  (bad)
    406a  dec dword [rcx*1+12100F0Eh]
    4071  adc al,18h
    4073  or al,0Bh
    4075  or cl,[rcx]
    4077  or [rsi],al
    4079  add al,0
