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

gemm_pair_q8_1x2:
     900  push rbx
     901  push rbp
     902  push r12
     904  test rcx,rcx
     907  je near 0000000000000BEEh
     90d  lea rax,[rel 0BF6h]
     914  mov rbp,rdx
     917  lea r10,[rdi]
     91a  mov r11,rsi
     91d  mov rbx,rcx
     920  vpbroadcastd ymm4,[r11+0D8h]
     929  vpbroadcastd ymm5,[r11+0D8h]
     932  vpbroadcastd ymm6,[r11+0DCh]
     93b  vpbroadcastd ymm7,[r11+0DCh]
     944  vmovdqu ymm0,[r10+80h]
     94d  vmovdqu ymm1,[r10+0A0h]
     956  vpbroadcastd ymm3,[r11]
     95b  vpmaddubsw ymm2,ymm0,ymm3
     960  vpmaddubsw ymm3,ymm1,ymm3
     965  vpaddw ymm4,ymm4,ymm2
     969  vpaddw ymm5,ymm5,ymm3
     96d  vpbroadcastd ymm3,[r11+20h]
     973  vpmaddubsw ymm2,ymm0,ymm3
     978  vpmaddubsw ymm3,ymm1,ymm3
     97d  vpaddw ymm6,ymm6,ymm2
     981  vpaddw ymm7,ymm7,ymm3
     985  vmovdqu ymm0,[r10+0C0h]
     98e  vmovdqu ymm1,[r10+0E0h]
     997  vpbroadcastd ymm3,[r11+4]
     99d  vpmaddubsw ymm2,ymm0,ymm3
     9a2  vpmaddubsw ymm3,ymm1,ymm3
     9a7  vpaddw ymm4,ymm4,ymm2
     9ab  vpaddw ymm5,ymm5,ymm3
     9af  vpbroadcastd ymm3,[r11+24h]
     9b5  vpmaddubsw ymm2,ymm0,ymm3
     9ba  vpmaddubsw ymm3,ymm1,ymm3
     9bf  vpaddw ymm6,ymm6,ymm2
     9c3  vpaddw ymm7,ymm7,ymm3
     9c7  vmovdqu ymm0,[r10+100h]
     9d0  vmovdqu ymm1,[r10+120h]
     9d9  vpbroadcastd ymm3,[r11+8]
     9df  vpmaddubsw ymm2,ymm0,ymm3
     9e4  vpmaddubsw ymm3,ymm1,ymm3
     9e9  vpaddw ymm4,ymm4,ymm2
     9ed  vpaddw ymm5,ymm5,ymm3
     9f1  vpbroadcastd ymm3,[r11+28h]
     9f7  vpmaddubsw ymm2,ymm0,ymm3
     9fc  vpmaddubsw ymm3,ymm1,ymm3
     a01  vpaddw ymm6,ymm6,ymm2
     a05  vpaddw ymm7,ymm7,ymm3
     a09  vmovdqu ymm0,[r10+140h]
     a12  vmovdqu ymm1,[r10+160h]
     a1b  vpbroadcastd ymm3,[r11+0Ch]
     a21  vpmaddubsw ymm2,ymm0,ymm3
     a26  vpmaddubsw ymm3,ymm1,ymm3
     a2b  vpaddw ymm4,ymm4,ymm2
     a2f  vpaddw ymm5,ymm5,ymm3
     a33  vpbroadcastd ymm3,[r11+2Ch]
     a39  vpmaddubsw ymm2,ymm0,ymm3
     a3e  vpmaddubsw ymm3,ymm1,ymm3
     a43  vpaddw ymm6,ymm6,ymm2
     a47  vpaddw ymm7,ymm7,ymm3
     a4b  vmovdqu ymm0,[r10+180h]
     a54  vmovdqu ymm1,[r10+1A0h]
     a5d  vpbroadcastd ymm3,[r11+10h]
     a63  vpmaddubsw ymm2,ymm0,ymm3
     a68  vpmaddubsw ymm3,ymm1,ymm3
     a6d  vpaddw ymm4,ymm4,ymm2
     a71  vpaddw ymm5,ymm5,ymm3
     a75  vpbroadcastd ymm3,[r11+30h]
     a7b  vpmaddubsw ymm2,ymm0,ymm3
     a80  vpmaddubsw ymm3,ymm1,ymm3
     a85  vpaddw ymm6,ymm6,ymm2
     a89  vpaddw ymm7,ymm7,ymm3
     a8d  vmovdqu ymm0,[r10+1C0h]
     a96  vmovdqu ymm1,[r10+1E0h]
     a9f  vpbroadcastd ymm3,[r11+14h]
     aa5  vpmaddubsw ymm2,ymm0,ymm3
     aaa  vpmaddubsw ymm3,ymm1,ymm3
     aaf  vpaddw ymm4,ymm4,ymm2
     ab3  vpaddw ymm5,ymm5,ymm3
     ab7  vpbroadcastd ymm3,[r11+34h]
     abd  vpmaddubsw ymm2,ymm0,ymm3
     ac2  vpmaddubsw ymm3,ymm1,ymm3
     ac7  vpaddw ymm6,ymm6,ymm2
     acb  vpaddw ymm7,ymm7,ymm3
     acf  vmovdqu ymm0,[r10+200h]
     ad8  vmovdqu ymm1,[r10+220h]
     ae1  vpbroadcastd ymm3,[r11+18h]
     ae7  vpmaddubsw ymm2,ymm0,ymm3
     aec  vpmaddubsw ymm3,ymm1,ymm3
     af1  vpaddw ymm4,ymm4,ymm2
     af5  vpaddw ymm5,ymm5,ymm3
     af9  vpbroadcastd ymm3,[r11+38h]
     aff  vpmaddubsw ymm2,ymm0,ymm3
     b04  vpmaddubsw ymm3,ymm1,ymm3
     b09  vpaddw ymm6,ymm6,ymm2
     b0d  vpaddw ymm7,ymm7,ymm3
     b11  vmovdqu ymm0,[r10+240h]
     b1a  vmovdqu ymm1,[r10+260h]
     b23  vpbroadcastd ymm3,[r11+1Ch]
     b29  vpmaddubsw ymm2,ymm0,ymm3
     b2e  vpmaddubsw ymm3,ymm1,ymm3
     b33  vpaddw ymm4,ymm4,ymm2
     b37  vpaddw ymm5,ymm5,ymm3
     b3b  vpbroadcastd ymm3,[r11+3Ch]
     b41  vpmaddubsw ymm2,ymm0,ymm3
     b46  vpmaddubsw ymm3,ymm1,ymm3
     b4b  vpaddw ymm6,ymm6,ymm2
     b4f  vpaddw ymm7,ymm7,ymm3
     b53  vmovups ymm0,[r10]
     b58  vmovups ymm1,[r10+20h]
     b5e  vpbroadcastd ymm2,[rax]
     b63  vbroadcastss ymm3,[r11+0C0h]
     b6c  vpmaddwd ymm4,ymm4,ymm2
     b70  vcvtdq2ps ymm4,ymm4
     b74  vmulps ymm4,ymm4,ymm0
     b78  vfmadd213ps ymm4,ymm3,[rbp]
     b7e  vmovups [rbp],ymm4
     b83  vpmaddwd ymm5,ymm5,ymm2
     b87  vcvtdq2ps ymm5,ymm5
     b8b  vmulps ymm5,ymm5,ymm1
     b8f  vfmadd213ps ymm5,ymm3,[rbp+20h]
     b95  vmovups [rbp+20h],ymm5
     b9a  vbroadcastss ymm3,[r11+0C4h]
     ba3  vpmaddwd ymm6,ymm6,ymm2
     ba7  vcvtdq2ps ymm6,ymm6
     bab  vmulps ymm6,ymm6,ymm0
     baf  vfmadd213ps ymm6,ymm3,[rbp+r8]
     bb6  vmovups [rbp+r8],ymm6
     bbd  vpmaddwd ymm7,ymm7,ymm2
     bc1  vcvtdq2ps ymm7,ymm7
     bc5  vmulps ymm7,ymm7,ymm1
     bc9  vfmadd213ps ymm7,ymm3,[rbp+r8+20h]
     bd0  vmovups [rbp+r8+20h],ymm7
     bd7  add r10,280h
     bde  add r11,100h
     be5  dec rbx
     be8  jne near 0000000000000920h
     bee  vzeroupper
     bf1  pop r12
     bf3  pop rbp
     bf4  pop rbx
     bf5  ret
     bf6  add [rax],eax
     bf8  add [rax],eax

gemm_word_q8_1x2:
     c00  push rbx
     c01  push rbp
     c02  push r12
     c04  test rcx,rcx
     c07  je near 000000000000106Fh
     c0d  lea rax,[rel 1077h]
     c14  mov rbp,rdx
     c17  lea r10,[rdi]
     c1a  mov r11,rsi
     c1d  mov rbx,rcx
     c20  vmovdqu ymm0,[r10+40h]
     c26  vmovdqu ymm1,[r10+60h]
     c2c  vpbroadcastd ymm3,[r11]
     c31  vpmaddwd ymm4,ymm0,ymm3
     c35  vpmaddwd ymm5,ymm1,ymm3
     c39  vpbroadcastd ymm3,[r11+40h]
     c3f  vpmaddwd ymm6,ymm0,ymm3
     c43  vpmaddwd ymm7,ymm1,ymm3
     c47  vmovdqu ymm0,[r10+80h]
     c50  vmovdqu ymm1,[r10+0A0h]
     c59  vpbroadcastd ymm3,[r11+4]
     c5f  vpmaddwd ymm2,ymm0,ymm3
     c63  vpmaddwd ymm3,ymm1,ymm3
     c67  vpaddd ymm4,ymm4,ymm2
     c6b  vpaddd ymm5,ymm5,ymm3
     c6f  vpbroadcastd ymm3,[r11+44h]
     c75  vpmaddwd ymm2,ymm0,ymm3
     c79  vpmaddwd ymm3,ymm1,ymm3
     c7d  vpaddd ymm6,ymm6,ymm2
     c81  vpaddd ymm7,ymm7,ymm3
     c85  vmovdqu ymm0,[r10+0C0h]
     c8e  vmovdqu ymm1,[r10+0E0h]
     c97  vpbroadcastd ymm3,[r11+8]
     c9d  vpmaddwd ymm2,ymm0,ymm3
     ca1  vpmaddwd ymm3,ymm1,ymm3
     ca5  vpaddd ymm4,ymm4,ymm2
     ca9  vpaddd ymm5,ymm5,ymm3
     cad  vpbroadcastd ymm3,[r11+48h]
     cb3  vpmaddwd ymm2,ymm0,ymm3
     cb7  vpmaddwd ymm3,ymm1,ymm3
     cbb  vpaddd ymm6,ymm6,ymm2
     cbf  vpaddd ymm7,ymm7,ymm3
     cc3  vmovdqu ymm0,[r10+100h]
     ccc  vmovdqu ymm1,[r10+120h]
     cd5  vpbroadcastd ymm3,[r11+0Ch]
     cdb  vpmaddwd ymm2,ymm0,ymm3
     cdf  vpmaddwd ymm3,ymm1,ymm3
     ce3  vpaddd ymm4,ymm4,ymm2
     ce7  vpaddd ymm5,ymm5,ymm3
     ceb  vpbroadcastd ymm3,[r11+4Ch]
     cf1  vpmaddwd ymm2,ymm0,ymm3
     cf5  vpmaddwd ymm3,ymm1,ymm3
     cf9  vpaddd ymm6,ymm6,ymm2
     cfd  vpaddd ymm7,ymm7,ymm3
     d01  vmovdqu ymm0,[r10+140h]
     d0a  vmovdqu ymm1,[r10+160h]
     d13  vpbroadcastd ymm3,[r11+10h]
     d19  vpmaddwd ymm2,ymm0,ymm3
     d1d  vpmaddwd ymm3,ymm1,ymm3
     d21  vpaddd ymm4,ymm4,ymm2
     d25  vpaddd ymm5,ymm5,ymm3
     d29  vpbroadcastd ymm3,[r11+50h]
     d2f  vpmaddwd ymm2,ymm0,ymm3
     d33  vpmaddwd ymm3,ymm1,ymm3
     d37  vpaddd ymm6,ymm6,ymm2
     d3b  vpaddd ymm7,ymm7,ymm3
     d3f  vmovdqu ymm0,[r10+180h]
     d48  vmovdqu ymm1,[r10+1A0h]
     d51  vpbroadcastd ymm3,[r11+14h]
     d57  vpmaddwd ymm2,ymm0,ymm3
     d5b  vpmaddwd ymm3,ymm1,ymm3
     d5f  vpaddd ymm4,ymm4,ymm2
     d63  vpaddd ymm5,ymm5,ymm3
     d67  vpbroadcastd ymm3,[r11+54h]
     d6d  vpmaddwd ymm2,ymm0,ymm3
     d71  vpmaddwd ymm3,ymm1,ymm3
     d75  vpaddd ymm6,ymm6,ymm2
     d79  vpaddd ymm7,ymm7,ymm3
     d7d  vmovdqu ymm0,[r10+1C0h]
     d86  vmovdqu ymm1,[r10+1E0h]
     d8f  vpbroadcastd ymm3,[r11+18h]
     d95  vpmaddwd ymm2,ymm0,ymm3
     d99  vpmaddwd ymm3,ymm1,ymm3
     d9d  vpaddd ymm4,ymm4,ymm2
     da1  vpaddd ymm5,ymm5,ymm3
     da5  vpbroadcastd ymm3,[r11+58h]
     dab  vpmaddwd ymm2,ymm0,ymm3
     daf  vpmaddwd ymm3,ymm1,ymm3
     db3  vpaddd ymm6,ymm6,ymm2
     db7  vpaddd ymm7,ymm7,ymm3
     dbb  vmovdqu ymm0,[r10+200h]
     dc4  vmovdqu ymm1,[r10+220h]
     dcd  vpbroadcastd ymm3,[r11+1Ch]
     dd3  vpmaddwd ymm2,ymm0,ymm3
     dd7  vpmaddwd ymm3,ymm1,ymm3
     ddb  vpaddd ymm4,ymm4,ymm2
     ddf  vpaddd ymm5,ymm5,ymm3
     de3  vpbroadcastd ymm3,[r11+5Ch]
     de9  vpmaddwd ymm2,ymm0,ymm3
     ded  vpmaddwd ymm3,ymm1,ymm3
     df1  vpaddd ymm6,ymm6,ymm2
     df5  vpaddd ymm7,ymm7,ymm3
     df9  vmovdqu ymm0,[r10+240h]
     e02  vmovdqu ymm1,[r10+260h]
     e0b  vpbroadcastd ymm3,[r11+20h]
     e11  vpmaddwd ymm2,ymm0,ymm3
     e15  vpmaddwd ymm3,ymm1,ymm3
     e19  vpaddd ymm4,ymm4,ymm2
     e1d  vpaddd ymm5,ymm5,ymm3
     e21  vpbroadcastd ymm3,[r11+60h]
     e27  vpmaddwd ymm2,ymm0,ymm3
     e2b  vpmaddwd ymm3,ymm1,ymm3
     e2f  vpaddd ymm6,ymm6,ymm2
     e33  vpaddd ymm7,ymm7,ymm3
     e37  vmovdqu ymm0,[r10+280h]
     e40  vmovdqu ymm1,[r10+2A0h]
     e49  vpbroadcastd ymm3,[r11+24h]
     e4f  vpmaddwd ymm2,ymm0,ymm3
     e53  vpmaddwd ymm3,ymm1,ymm3
     e57  vpaddd ymm4,ymm4,ymm2
     e5b  vpaddd ymm5,ymm5,ymm3
     e5f  vpbroadcastd ymm3,[r11+64h]
     e65  vpmaddwd ymm2,ymm0,ymm3
     e69  vpmaddwd ymm3,ymm1,ymm3
     e6d  vpaddd ymm6,ymm6,ymm2
     e71  vpaddd ymm7,ymm7,ymm3
     e75  vmovdqu ymm0,[r10+2C0h]
     e7e  vmovdqu ymm1,[r10+2E0h]
     e87  vpbroadcastd ymm3,[r11+28h]
     e8d  vpmaddwd ymm2,ymm0,ymm3
     e91  vpmaddwd ymm3,ymm1,ymm3
     e95  vpaddd ymm4,ymm4,ymm2
     e99  vpaddd ymm5,ymm5,ymm3
     e9d  vpbroadcastd ymm3,[r11+68h]
     ea3  vpmaddwd ymm2,ymm0,ymm3
     ea7  vpmaddwd ymm3,ymm1,ymm3
     eab  vpaddd ymm6,ymm6,ymm2
     eaf  vpaddd ymm7,ymm7,ymm3
     eb3  vmovdqu ymm0,[r10+300h]
     ebc  vmovdqu ymm1,[r10+320h]
     ec5  vpbroadcastd ymm3,[r11+2Ch]
     ecb  vpmaddwd ymm2,ymm0,ymm3
     ecf  vpmaddwd ymm3,ymm1,ymm3
     ed3  vpaddd ymm4,ymm4,ymm2
     ed7  vpaddd ymm5,ymm5,ymm3
     edb  vpbroadcastd ymm3,[r11+6Ch]
     ee1  vpmaddwd ymm2,ymm0,ymm3
     ee5  vpmaddwd ymm3,ymm1,ymm3
     ee9  vpaddd ymm6,ymm6,ymm2
     eed  vpaddd ymm7,ymm7,ymm3
     ef1  vmovdqu ymm0,[r10+340h]
     efa  vmovdqu ymm1,[r10+360h]
     f03  vpbroadcastd ymm3,[r11+30h]
     f09  vpmaddwd ymm2,ymm0,ymm3
     f0d  vpmaddwd ymm3,ymm1,ymm3
     f11  vpaddd ymm4,ymm4,ymm2
     f15  vpaddd ymm5,ymm5,ymm3
     f19  vpbroadcastd ymm3,[r11+70h]
     f1f  vpmaddwd ymm2,ymm0,ymm3
     f23  vpmaddwd ymm3,ymm1,ymm3
     f27  vpaddd ymm6,ymm6,ymm2
     f2b  vpaddd ymm7,ymm7,ymm3
     f2f  vmovdqu ymm0,[r10+380h]
     f38  vmovdqu ymm1,[r10+3A0h]
     f41  vpbroadcastd ymm3,[r11+34h]
     f47  vpmaddwd ymm2,ymm0,ymm3
     f4b  vpmaddwd ymm3,ymm1,ymm3
     f4f  vpaddd ymm4,ymm4,ymm2
     f53  vpaddd ymm5,ymm5,ymm3
     f57  vpbroadcastd ymm3,[r11+74h]
     f5d  vpmaddwd ymm2,ymm0,ymm3
     f61  vpmaddwd ymm3,ymm1,ymm3
     f65  vpaddd ymm6,ymm6,ymm2
     f69  vpaddd ymm7,ymm7,ymm3
     f6d  vmovdqu ymm0,[r10+3C0h]
     f76  vmovdqu ymm1,[r10+3E0h]
     f7f  vpbroadcastd ymm3,[r11+38h]
     f85  vpmaddwd ymm2,ymm0,ymm3
     f89  vpmaddwd ymm3,ymm1,ymm3
     f8d  vpaddd ymm4,ymm4,ymm2
     f91  vpaddd ymm5,ymm5,ymm3
     f95  vpbroadcastd ymm3,[r11+78h]
     f9b  vpmaddwd ymm2,ymm0,ymm3
     f9f  vpmaddwd ymm3,ymm1,ymm3
     fa3  vpaddd ymm6,ymm6,ymm2
     fa7  vpaddd ymm7,ymm7,ymm3
     fab  vmovdqu ymm0,[r10+400h]
     fb4  vmovdqu ymm1,[r10+420h]
     fbd  vpbroadcastd ymm3,[r11+3Ch]
     fc3  vpmaddwd ymm2,ymm0,ymm3
     fc7  vpmaddwd ymm3,ymm1,ymm3
     fcb  vpaddd ymm4,ymm4,ymm2
     fcf  vpaddd ymm5,ymm5,ymm3
     fd3  vpbroadcastd ymm3,[r11+7Ch]
     fd9  vpmaddwd ymm2,ymm0,ymm3
     fdd  vpmaddwd ymm3,ymm1,ymm3
     fe1  vpaddd ymm6,ymm6,ymm2
     fe5  vpaddd ymm7,ymm7,ymm3
     fe9  vmovups ymm0,[r10]
     fee  vmovups ymm1,[r10+20h]
     ff4  vbroadcastss ymm3,[r11+180h]
     ffd  vcvtdq2ps ymm4,ymm4
    1001  vmulps ymm4,ymm4,ymm0
    1005  vfmadd213ps ymm4,ymm3,[rbp]
    100b  vmovups [rbp],ymm4
    1010  vcvtdq2ps ymm5,ymm5
    1014  vmulps ymm5,ymm5,ymm1
    1018  vfmadd213ps ymm5,ymm3,[rbp+20h]
    101e  vmovups [rbp+20h],ymm5
    1023  vbroadcastss ymm3,[r11+184h]
    102c  vcvtdq2ps ymm6,ymm6
    1030  vmulps ymm6,ymm6,ymm0
    1034  vfmadd213ps ymm6,ymm3,[rbp+r8]
    103b  vmovups [rbp+r8],ymm6
    1042  vcvtdq2ps ymm7,ymm7
    1046  vmulps ymm7,ymm7,ymm1
    104a  vfmadd213ps ymm7,ymm3,[rbp+r8+20h]
    1051  vmovups [rbp+r8+20h],ymm7
    1058  add r10,440h
    105f  add r11,1C0h
    1066  dec rbx
    1069  jne near 0000000000000C20h
    106f  vzeroupper
    1072  pop r12
    1074  pop rbp
    1075  pop rbx
    1076  ret
    1077  add [rax],eax
    1079  add [rax],eax

decode_int8_words:
    1080  lea r8,[rel 1326h]
    1087  vmovdqu ymm0,[r8+60h]
    108d  test rcx,rcx
    1090  je near 0000000000001322h
    1096  vcvtph2ps ymm5,[rdi]
    109b  vmovups [rdx],ymm5
    109f  vcvtph2ps ymm5,[rdi+10h]
    10a5  vmovups [rdx+20h],ymm5
    10aa  vpxor ymm3,ymm0,[rsi]
    10ae  vpsllw ymm1,ymm3,8
    10b3  vpsraw ymm1,ymm1,8
    10b8  vpsraw ymm3,ymm3,8
    10bd  vmovdqu [rdx+40h],ymm1
    10c2  vmovdqu [rdx+240h],ymm3
    10ca  vpxor ymm4,ymm0,[rsi+20h]
    10cf  vpsllw ymm2,ymm4,8
    10d4  vpsraw ymm2,ymm2,8
    10d9  vpsraw ymm4,ymm4,8
    10de  vmovdqu [rdx+60h],ymm2
    10e3  vmovdqu [rdx+260h],ymm4
    10eb  vpxor ymm3,ymm0,[rsi+40h]
    10f0  vpsllw ymm1,ymm3,8
    10f5  vpsraw ymm1,ymm1,8
    10fa  vpsraw ymm3,ymm3,8
    10ff  vmovdqu [rdx+80h],ymm1
    1107  vmovdqu [rdx+280h],ymm3
    110f  vpxor ymm4,ymm0,[rsi+60h]
    1114  vpsllw ymm2,ymm4,8
    1119  vpsraw ymm2,ymm2,8
    111e  vpsraw ymm4,ymm4,8
    1123  vmovdqu [rdx+0A0h],ymm2
    112b  vmovdqu [rdx+2A0h],ymm4
    1133  vpxor ymm3,ymm0,[rsi+80h]
    113b  vpsllw ymm1,ymm3,8
    1140  vpsraw ymm1,ymm1,8
    1145  vpsraw ymm3,ymm3,8
    114a  vmovdqu [rdx+0C0h],ymm1
    1152  vmovdqu [rdx+2C0h],ymm3
    115a  vpxor ymm4,ymm0,[rsi+0A0h]
    1162  vpsllw ymm2,ymm4,8
    1167  vpsraw ymm2,ymm2,8
    116c  vpsraw ymm4,ymm4,8
    1171  vmovdqu [rdx+0E0h],ymm2
    1179  vmovdqu [rdx+2E0h],ymm4
    1181  vpxor ymm3,ymm0,[rsi+0C0h]
    1189  vpsllw ymm1,ymm3,8
    118e  vpsraw ymm1,ymm1,8
    1193  vpsraw ymm3,ymm3,8
    1198  vmovdqu [rdx+100h],ymm1
    11a0  vmovdqu [rdx+300h],ymm3
    11a8  vpxor ymm4,ymm0,[rsi+0E0h]
    11b0  vpsllw ymm2,ymm4,8
    11b5  vpsraw ymm2,ymm2,8
    11ba  vpsraw ymm4,ymm4,8
    11bf  vmovdqu [rdx+120h],ymm2
    11c7  vmovdqu [rdx+320h],ymm4
    11cf  vpxor ymm3,ymm0,[rsi+100h]
    11d7  vpsllw ymm1,ymm3,8
    11dc  vpsraw ymm1,ymm1,8
    11e1  vpsraw ymm3,ymm3,8
    11e6  vmovdqu [rdx+140h],ymm1
    11ee  vmovdqu [rdx+340h],ymm3
    11f6  vpxor ymm4,ymm0,[rsi+120h]
    11fe  vpsllw ymm2,ymm4,8
    1203  vpsraw ymm2,ymm2,8
    1208  vpsraw ymm4,ymm4,8
    120d  vmovdqu [rdx+160h],ymm2
    1215  vmovdqu [rdx+360h],ymm4
    121d  vpxor ymm3,ymm0,[rsi+140h]
    1225  vpsllw ymm1,ymm3,8
    122a  vpsraw ymm1,ymm1,8
    122f  vpsraw ymm3,ymm3,8
    1234  vmovdqu [rdx+180h],ymm1
    123c  vmovdqu [rdx+380h],ymm3
    1244  vpxor ymm4,ymm0,[rsi+160h]
    124c  vpsllw ymm2,ymm4,8
    1251  vpsraw ymm2,ymm2,8
    1256  vpsraw ymm4,ymm4,8
    125b  vmovdqu [rdx+1A0h],ymm2
    1263  vmovdqu [rdx+3A0h],ymm4
    126b  vpxor ymm3,ymm0,[rsi+180h]
    1273  vpsllw ymm1,ymm3,8
    1278  vpsraw ymm1,ymm1,8
    127d  vpsraw ymm3,ymm3,8
    1282  vmovdqu [rdx+1C0h],ymm1
    128a  vmovdqu [rdx+3C0h],ymm3
    1292  vpxor ymm4,ymm0,[rsi+1A0h]
    129a  vpsllw ymm2,ymm4,8
    129f  vpsraw ymm2,ymm2,8
    12a4  vpsraw ymm4,ymm4,8
    12a9  vmovdqu [rdx+1E0h],ymm2
    12b1  vmovdqu [rdx+3E0h],ymm4
    12b9  vpxor ymm3,ymm0,[rsi+1C0h]
    12c1  vpsllw ymm1,ymm3,8
    12c6  vpsraw ymm1,ymm1,8
    12cb  vpsraw ymm3,ymm3,8
    12d0  vmovdqu [rdx+200h],ymm1
    12d8  vmovdqu [rdx+400h],ymm3
    12e0  vpxor ymm4,ymm0,[rsi+1E0h]
    12e8  vpsllw ymm2,ymm4,8
    12ed  vpsraw ymm2,ymm2,8
    12f2  vpsraw ymm4,ymm4,8
    12f7  vmovdqu [rdx+220h],ymm2
    12ff  vmovdqu [rdx+420h],ymm4
    1307  add rdi,20h
    130b  add rsi,200h
    1312  add rdx,440h
    1319  dec rcx
    131c  jne near 0000000000001096h
    1322  vzeroupper
    1325  ret
    1326  (bad)
    132a  (bad)
    132e  (bad)
    1332  (bad)
    1336  (bad)
    133a  (bad)
    133e  (bad)
    1342  (bad)
    1346  or al,0Dh
    1348  (bad)
    134a  adc [rdx],dl
    134c  adc al,18h
    134e  or al,0Bh
    1350  or cl,[rcx]
    1352  or [rsi],al
    1354  add al,0
    1356  or al,0Dh
    1358  (bad)
    135a  adc [rdx],dl
    135c  adc al,18h
    135e  or al,0Bh
    1360  or cl,[rcx]
    1362  or [rsi],al
    1364  add al,0
    1366  add [rax],eax
    1368  add [rax],eax
    136a  add [rax],eax
    136c  add [rax],eax
    136e  add [rax],eax
    1370  add [rax],eax
    1372  add [rax],eax
    1374  add [rax],eax
    1376  add [rax],eax
    1378  add [rax],eax
    137a  add [rax],eax
    137c  add [rax],eax
    137e  add [rax],eax
    1380  add [rax],eax
    1382  add [rax],eax
    1384  add [rax],eax
    1386  add byte [rax-7F7F7F80h],80h
    138d  add byte [rax-7F7F7F80h],80h
    1394  add byte [rax-7F7F7F80h],80h
    139b  add byte [rax-7F7F7F80h],80h
    13a2  add byte [rax+8080h],40h
    13a9  add [rax],al
    13ab  add [rax],al
    13ae  add [rax],al
    13b0  add [rax],al
    13b3  add [rax],al
    13b6  add [rax],al
    13b8  add [rax],al
    13bb  add [rax],al
    13be  add [rax],al
    13c0  add [rax],al
    13c3  add [rax],al
    13c6  add [rax],al
    13c8  add [rdi],bh
    13ca  add [rax],al
    13cc  add [rdi],bh
    13ce  add [rax],al
    13d0  add [rdi],bh
    13d2  add [rax],al
    13d4  add [rdi],bh
    13d6  add [rax],al
    13d8  add [rdi],bh
    13da  add [rax],al
    13dc  add [rdi],bh
    13de  add [rax],al
    13e0  add [rdi],bh
    13e2  add [rax],al
    13e4  add [rdi],bh
    13e6  cmp bh,0FFh
    13e9  inc dword [rax-7F000001h]
    13ef  (bad)
    13f1  inc dword [rax-7F000001h]
    13f7  (bad)
    13f9  inc dword [rax-7F000001h]
    13ff  (bad)
    1401  inc dword [rax+0FFFFFFh]
    1407  add [rax-35h],al
    140a  add [rax],al
    140c  retf
    140e  add [rax],al
    1410  retf
    1412  add [rax],al
    1414  retf
    1416  add [rax],al
    1418  retf
    141a  add [rax],al
    141c  retf
    141e  add [rax],al
    1420  retf
    1422  add [rax],al
    1424  retf

decode_mxfp4:
    1440  lea r8,[rel 1650h]
    1447  vmovdqu ymm0,[r8+20h]
    144d  test rcx,rcx
    1450  je near 000000000000164Ch
    1456  vpmovzxbd ymm9,[rdi]
    145b  vpslld ymm9,ymm9,17h
    1461  vpmaxud ymm9,ymm9,[r8+80h]
    146a  vmulps ymm9,ymm9,[r8+0A0h]
    1473  vmulps ymm10,ymm9,[r8+0E0h]
    147c  vmovups [rdx],ymm9
    1480  vmovups [rdx+40h],ymm10
    1485  vpmovzxbd ymm9,[rdi+8]
    148b  vpslld ymm9,ymm9,17h
    1491  vpmaxud ymm9,ymm9,[r8+80h]
    149a  vmulps ymm9,ymm9,[r8+0A0h]
    14a3  vmulps ymm10,ymm9,[r8+0E0h]
    14ac  vmovups [rdx+20h],ymm9
    14b1  vmovups [rdx+60h],ymm10
    14b6  vmovdqu ymm1,[rsi]
    14ba  vpsrlw ymm2,ymm1,4
    14bf  vpand ymm1,ymm1,[r8]
    14c4  vpand ymm2,ymm2,[r8]
    14c9  vpshufb ymm1,ymm0,ymm1
    14ce  vpshufb ymm2,ymm0,ymm2
    14d3  vmovdqu [rdx+80h],ymm1
    14db  vmovdqu [rdx+0C0h],ymm2
    14e3  vmovdqu ymm3,[rsi+20h]
    14e8  vpsrlw ymm4,ymm3,4
    14ed  vpand ymm3,ymm3,[r8]
    14f2  vpand ymm4,ymm4,[r8]
    14f7  vpshufb ymm3,ymm0,ymm3
    14fc  vpshufb ymm4,ymm0,ymm4
    1501  vmovdqu [rdx+0A0h],ymm3
    1509  vmovdqu [rdx+0E0h],ymm4
    1511  vmovdqu ymm5,[rsi+40h]
    1516  vpsrlw ymm6,ymm5,4
    151b  vpand ymm5,ymm5,[r8]
    1520  vpand ymm6,ymm6,[r8]
    1525  vpshufb ymm5,ymm0,ymm5
    152a  vpshufb ymm6,ymm0,ymm6
    152f  vmovdqu [rdx+100h],ymm5
    1537  vmovdqu [rdx+140h],ymm6
    153f  vmovdqu ymm7,[rsi+60h]
    1544  vpsrlw ymm8,ymm7,4
    1549  vpand ymm7,ymm7,[r8]
    154e  vpand ymm8,ymm8,[r8]
    1553  vpshufb ymm7,ymm0,ymm7
    1558  vpshufb ymm8,ymm0,ymm8
    155d  vmovdqu [rdx+120h],ymm7
    1565  vmovdqu [rdx+160h],ymm8
    156d  vmovdqu ymm1,[rsi+80h]
    1575  vpsrlw ymm2,ymm1,4
    157a  vpand ymm1,ymm1,[r8]
    157f  vpand ymm2,ymm2,[r8]
    1584  vpshufb ymm1,ymm0,ymm1
    1589  vpshufb ymm2,ymm0,ymm2
    158e  vmovdqu [rdx+180h],ymm1
    1596  vmovdqu [rdx+1C0h],ymm2
    159e  vmovdqu ymm3,[rsi+0A0h]
    15a6  vpsrlw ymm4,ymm3,4
    15ab  vpand ymm3,ymm3,[r8]
    15b0  vpand ymm4,ymm4,[r8]
    15b5  vpshufb ymm3,ymm0,ymm3
    15ba  vpshufb ymm4,ymm0,ymm4
    15bf  vmovdqu [rdx+1A0h],ymm3
    15c7  vmovdqu [rdx+1E0h],ymm4
    15cf  vmovdqu ymm5,[rsi+0C0h]
    15d7  vpsrlw ymm6,ymm5,4
    15dc  vpand ymm5,ymm5,[r8]
    15e1  vpand ymm6,ymm6,[r8]
    15e6  vpshufb ymm5,ymm0,ymm5
    15eb  vpshufb ymm6,ymm0,ymm6
    15f0  vmovdqu [rdx+200h],ymm5
    15f8  vmovdqu [rdx+240h],ymm6
    1600  vmovdqu ymm7,[rsi+0E0h]
    1608  vpsrlw ymm8,ymm7,4
    160d  vpand ymm7,ymm7,[r8]
    1612  vpand ymm8,ymm8,[r8]
    1617  vpshufb ymm7,ymm0,ymm7
    161c  vpshufb ymm8,ymm0,ymm8
    1621  vmovdqu [rdx+220h],ymm7
    1629  vmovdqu [rdx+260h],ymm8
    1631  add rdi,10h
    1635  add rsi,100h
    163c  add rdx,280h
    1643  dec rcx
    1646  jne near 0000000000001456h
    164c  vzeroupper
    164f  ret
    1650  (bad)
    1654  (bad)
    1658  (bad)
    165c  (bad)
    1660  (bad)
    1664  (bad)
    1668  (bad)
    166c  (bad)
    1670  or al,0Dh
    1672  (bad)
    1674  adc [rdx],dl
    1676  adc al,18h
    1678  or al,0Bh
    167a  or cl,[rcx]
    167c  or [rsi],al
    167e  add al,0
    1680  or al,0Dh
    1682  (bad)
    1684  adc [rdx],dl
    1686  adc al,18h
    1688  or al,0Bh
    168a  or cl,[rcx]
    168c  or [rsi],al
    168e  add al,0
    1690  add [rax],eax
    1692  add [rax],eax
    1694  add [rax],eax
    1696  add [rax],eax
    1698  add [rax],eax
    169a  add [rax],eax
    169c  add [rax],eax
    169e  add [rax],eax
    16a0  add [rax],eax
    16a2  add [rax],eax
    16a4  add [rax],eax
    16a6  add [rax],eax
    16a8  add [rax],eax
    16aa  add [rax],eax
    16ac  add [rax],eax
    16ae  add [rax],eax
    16b0  add byte [rax-7F7F7F80h],80h
    16b7  add byte [rax-7F7F7F80h],80h
    16be  add byte [rax-7F7F7F80h],80h
    16c5  add byte [rax-7F7F7F80h],80h
    16cc  add byte [rax+8080h],40h
    16d3  add [rax],al
    16d5  add [rax],al
    16d8  add [rax],al
    16da  add [rax],al
    16dd  add [rax],al
    16e0  add [rax],al
    16e2  add [rax],al
    16e5  add [rax],al
    16e8  add [rax],al
    16ea  add [rax],al
    16ed  add [rax],al
    16f0  add [rax],al
    16f2  add [rdi],bh
    16f4  add [rax],al
    16f6  add [rdi],bh
    16f8  add [rax],al
    16fa  add [rdi],bh
    16fc  add [rax],al
    16fe  add [rdi],bh
    1700  add [rax],al
    1702  add [rdi],bh
    1704  add [rax],al
    1706  add [rdi],bh
    1708  add [rax],al
    170a  add [rdi],bh
    170c  add [rax],al
    170e  add [rdi],bh
    1710  hlt
    1711  (bad)
    1713  push rsp
    1715  (bad)
    1717  push rsp
    1719  (bad)
    171b  push rsp
    171d  (bad)
    171f  push rsp
    1721  (bad)
    1723  push rsp
    1725  (bad)
    1727  push rsp
    1729  (bad)
    172b  push rsp
    172d  (bad)
    172f  inc dword [rax]
    1731  add [rax-35h],al
    1734  add [rax],al
    1736  retf
    1738  add [rax],al
    173a  retf
    173c  add [rax],al
    173e  retf
    1740  add [rax],al
    1742  retf
    1744  add [rax],al
    1746  retf
    1748  add [rax],al
    174a  retf
    174c  add [rax],al
    174e  retf

dot_bf16_f32_k64_t1:
    1780  push rbx
    1781  mov rbx,[rsi]
    1784  vpxor ymm7,ymm7,ymm7
    1788  vpxor ymm8,ymm8,ymm8
    178d  vpxor ymm9,ymm9,ymm9
    1792  vpxor ymm10,ymm10,ymm10
    1797  vpxor ymm11,ymm11,ymm11
    179c  vpxor ymm12,ymm12,ymm12
    17a1  vpxor ymm13,ymm13,ymm13
    17a6  vpxor ymm14,ymm14,ymm14
    17ab  mov r8,rdi
    17ae  lea r9,[rdi]
    17b1  xor r10,r10
    17b4  vmovups ymm1,[r9]
    17b9  vpslld ymm1,ymm1,10h
    17be  vmovups ymm2,[r9+20h]
    17c4  vpslld ymm2,ymm2,10h
    17c9  vbroadcastss ymm4,[rbx+r10]
    17cf  vfmadd231ps ymm7,ymm1,ymm4
    17d4  vfmadd231ps ymm11,ymm2,ymm4
    17d9  vmovups ymm1,[r9]
    17de  vpand ymm1,ymm1,[rel 18A3h]
    17e6  vmovups ymm2,[r9+20h]
    17ec  vpand ymm2,ymm2,[rel 18A3h]
    17f4  vbroadcastss ymm4,[rbx+r10+4]
    17fb  vfmadd231ps ymm8,ymm1,ymm4
    1800  vfmadd231ps ymm12,ymm2,ymm4
    1805  vmovups ymm1,[r9+40h]
    180b  vpslld ymm1,ymm1,10h
    1810  vmovups ymm2,[r9+60h]
    1816  vpslld ymm2,ymm2,10h
    181b  vbroadcastss ymm4,[rbx+r10+8]
    1822  vfmadd231ps ymm9,ymm1,ymm4
    1827  vfmadd231ps ymm13,ymm2,ymm4
    182c  vmovups ymm1,[r9+40h]
    1832  vpand ymm1,ymm1,[rel 18A3h]
    183a  vmovups ymm2,[r9+60h]
    1840  vpand ymm2,ymm2,[rel 18A3h]
    1848  vbroadcastss ymm4,[rbx+r10+0Ch]
    184f  vfmadd231ps ymm10,ymm1,ymm4
    1854  vfmadd231ps ymm14,ymm2,ymm4
    1859  add r9,80h
    1860  add r10,10h
    1864  cmp r10,100h
    186b  jne near 00000000000017B4h
    1871  mov rax,rdx
    1874  vaddps ymm7,ymm7,ymm8
    1879  vaddps ymm9,ymm9,ymm10
    187e  vaddps ymm7,ymm7,ymm9
    1883  vmovups [rax],ymm7
    1887  vaddps ymm11,ymm11,ymm12
    188c  vaddps ymm13,ymm13,ymm14
    1891  vaddps ymm11,ymm11,ymm13
    1896  vmovups [rax+20h],ymm11
    189b  add rax,rcx
    189e  vzeroupper
    18a1  pop rbx
    18a2  ret
    18a3  add [rax],al
    18a5  (bad)
    18a7  add [rax],al
    18a9  (bad)
    18ab  add [rax],al
    18ad  (bad)
    18af  add [rax],al
    18b1  (bad)
    18b3  add [rax],al
    18b5  (bad)
    18b7  add [rax],al
    18b9  (bad)
    18bb  add [rax],al
    18bd  (bad)
    18bf  add [rax],al
    18c1  (bad)

dot_int4_f32_k64_t1:
    1900  push rbx
    1901  mov rbx,[rsi]
    1904  lea r11,[rel 21F9h]
    190b  vpxor ymm7,ymm7,ymm7
    190f  vpxor ymm8,ymm8,ymm8
    1914  vpxor ymm9,ymm9,ymm9
    1919  vpxor ymm10,ymm10,ymm10
    191e  vpxor ymm11,ymm11,ymm11
    1923  vpxor ymm12,ymm12,ymm12
    1928  vpxor ymm13,ymm13,ymm13
    192d  vpxor ymm14,ymm14,ymm14
    1932  mov r8,rdi
    1935  lea r9,[rdi+40h]
    1939  xor r10,r10
    193c  vcvtph2ps ymm5,[r8]
    1941  vcvtph2ps ymm6,[r8+10h]
    1947  vmovdqu ymm1,[r9]
    194c  vpsrlw ymm2,ymm1,4
    1951  vpand ymm1,ymm1,[r11]
    1956  vpand ymm2,ymm2,[r11]
    195b  vpsubb ymm1,ymm1,[rel 22F9h]
    1963  vpsubb ymm2,ymm2,[rel 22F9h]
    196b  vpslld ymm3,ymm1,18h
    1970  vpsrad ymm3,ymm3,18h
    1975  vcvtdq2ps ymm3,ymm3
    1979  vmulps ymm3,ymm3,ymm5
    197d  vbroadcastss ymm4,[rbx+r10]
    1983  vfmadd231ps ymm7,ymm3,ymm4
    1988  vpslld ymm3,ymm1,10h
    198d  vpsrad ymm3,ymm3,18h
    1992  vcvtdq2ps ymm3,ymm3
    1996  vmulps ymm3,ymm3,ymm5
    199a  vbroadcastss ymm4,[rbx+r10+4]
    19a1  vfmadd231ps ymm8,ymm3,ymm4
    19a6  vpslld ymm3,ymm1,8
    19ab  vpsrad ymm3,ymm3,18h
    19b0  vcvtdq2ps ymm3,ymm3
    19b4  vmulps ymm3,ymm3,ymm5
    19b8  vbroadcastss ymm4,[rbx+r10+8]
    19bf  vfmadd231ps ymm9,ymm3,ymm4
    19c4  vpsrad ymm3,ymm1,18h
    19c9  vcvtdq2ps ymm3,ymm3
    19cd  vmulps ymm3,ymm3,ymm5
    19d1  vbroadcastss ymm4,[rbx+r10+0Ch]
    19d8  vfmadd231ps ymm10,ymm3,ymm4
    19dd  vpslld ymm3,ymm2,18h
    19e2  vpsrad ymm3,ymm3,18h
    19e7  vcvtdq2ps ymm3,ymm3
    19eb  vmulps ymm3,ymm3,ymm5
    19ef  vbroadcastss ymm4,[rbx+r10+10h]
    19f6  vfmadd231ps ymm7,ymm3,ymm4
    19fb  vpslld ymm3,ymm2,10h
    1a00  vpsrad ymm3,ymm3,18h
    1a05  vcvtdq2ps ymm3,ymm3
    1a09  vmulps ymm3,ymm3,ymm5
    1a0d  vbroadcastss ymm4,[rbx+r10+14h]
    1a14  vfmadd231ps ymm8,ymm3,ymm4
    1a19  vpslld ymm3,ymm2,8
    1a1e  vpsrad ymm3,ymm3,18h
    1a23  vcvtdq2ps ymm3,ymm3
    1a27  vmulps ymm3,ymm3,ymm5
    1a2b  vbroadcastss ymm4,[rbx+r10+18h]
    1a32  vfmadd231ps ymm9,ymm3,ymm4
    1a37  vpsrad ymm3,ymm2,18h
    1a3c  vcvtdq2ps ymm3,ymm3
    1a40  vmulps ymm3,ymm3,ymm5
    1a44  vbroadcastss ymm4,[rbx+r10+1Ch]
    1a4b  vfmadd231ps ymm10,ymm3,ymm4
    1a50  vmovdqu ymm1,[r9+20h]
    1a56  vpsrlw ymm2,ymm1,4
    1a5b  vpand ymm1,ymm1,[r11]
    1a60  vpand ymm2,ymm2,[r11]
    1a65  vpsubb ymm1,ymm1,[rel 22F9h]
    1a6d  vpsubb ymm2,ymm2,[rel 22F9h]
    1a75  vpslld ymm3,ymm1,18h
    1a7a  vpsrad ymm3,ymm3,18h
    1a7f  vcvtdq2ps ymm3,ymm3
    1a83  vmulps ymm3,ymm3,ymm6
    1a87  vbroadcastss ymm4,[rbx+r10]
    1a8d  vfmadd231ps ymm11,ymm3,ymm4
    1a92  vpslld ymm3,ymm1,10h
    1a97  vpsrad ymm3,ymm3,18h
    1a9c  vcvtdq2ps ymm3,ymm3
    1aa0  vmulps ymm3,ymm3,ymm6
    1aa4  vbroadcastss ymm4,[rbx+r10+4]
    1aab  vfmadd231ps ymm12,ymm3,ymm4
    1ab0  vpslld ymm3,ymm1,8
    1ab5  vpsrad ymm3,ymm3,18h
    1aba  vcvtdq2ps ymm3,ymm3
    1abe  vmulps ymm3,ymm3,ymm6
    1ac2  vbroadcastss ymm4,[rbx+r10+8]
    1ac9  vfmadd231ps ymm13,ymm3,ymm4
    1ace  vpsrad ymm3,ymm1,18h
    1ad3  vcvtdq2ps ymm3,ymm3
    1ad7  vmulps ymm3,ymm3,ymm6
    1adb  vbroadcastss ymm4,[rbx+r10+0Ch]
    1ae2  vfmadd231ps ymm14,ymm3,ymm4
    1ae7  vpslld ymm3,ymm2,18h
    1aec  vpsrad ymm3,ymm3,18h
    1af1  vcvtdq2ps ymm3,ymm3
    1af5  vmulps ymm3,ymm3,ymm6
    1af9  vbroadcastss ymm4,[rbx+r10+10h]
    1b00  vfmadd231ps ymm11,ymm3,ymm4
    1b05  vpslld ymm3,ymm2,10h
    1b0a  vpsrad ymm3,ymm3,18h
    1b0f  vcvtdq2ps ymm3,ymm3
    1b13  vmulps ymm3,ymm3,ymm6
    1b17  vbroadcastss ymm4,[rbx+r10+14h]
    1b1e  vfmadd231ps ymm12,ymm3,ymm4
    1b23  vpslld ymm3,ymm2,8
    1b28  vpsrad ymm3,ymm3,18h
    1b2d  vcvtdq2ps ymm3,ymm3
    1b31  vmulps ymm3,ymm3,ymm6
    1b35  vbroadcastss ymm4,[rbx+r10+18h]
    1b3c  vfmadd231ps ymm13,ymm3,ymm4
    1b41  vpsrad ymm3,ymm2,18h
    1b46  vcvtdq2ps ymm3,ymm3
    1b4a  vmulps ymm3,ymm3,ymm6
    1b4e  vbroadcastss ymm4,[rbx+r10+1Ch]
    1b55  vfmadd231ps ymm14,ymm3,ymm4
    1b5a  vmovdqu ymm1,[r9+40h]
    1b60  vpsrlw ymm2,ymm1,4
    1b65  vpand ymm1,ymm1,[r11]
    1b6a  vpand ymm2,ymm2,[r11]
    1b6f  vpsubb ymm1,ymm1,[rel 22F9h]
    1b77  vpsubb ymm2,ymm2,[rel 22F9h]
    1b7f  vpslld ymm3,ymm1,18h
    1b84  vpsrad ymm3,ymm3,18h
    1b89  vcvtdq2ps ymm3,ymm3
    1b8d  vmulps ymm3,ymm3,ymm5
    1b91  vbroadcastss ymm4,[rbx+r10+20h]
    1b98  vfmadd231ps ymm7,ymm3,ymm4
    1b9d  vpslld ymm3,ymm1,10h
    1ba2  vpsrad ymm3,ymm3,18h
    1ba7  vcvtdq2ps ymm3,ymm3
    1bab  vmulps ymm3,ymm3,ymm5
    1baf  vbroadcastss ymm4,[rbx+r10+24h]
    1bb6  vfmadd231ps ymm8,ymm3,ymm4
    1bbb  vpslld ymm3,ymm1,8
    1bc0  vpsrad ymm3,ymm3,18h
    1bc5  vcvtdq2ps ymm3,ymm3
    1bc9  vmulps ymm3,ymm3,ymm5
    1bcd  vbroadcastss ymm4,[rbx+r10+28h]
    1bd4  vfmadd231ps ymm9,ymm3,ymm4
    1bd9  vpsrad ymm3,ymm1,18h
    1bde  vcvtdq2ps ymm3,ymm3
    1be2  vmulps ymm3,ymm3,ymm5
    1be6  vbroadcastss ymm4,[rbx+r10+2Ch]
    1bed  vfmadd231ps ymm10,ymm3,ymm4
    1bf2  vpslld ymm3,ymm2,18h
    1bf7  vpsrad ymm3,ymm3,18h
    1bfc  vcvtdq2ps ymm3,ymm3
    1c00  vmulps ymm3,ymm3,ymm5
    1c04  vbroadcastss ymm4,[rbx+r10+30h]
    1c0b  vfmadd231ps ymm7,ymm3,ymm4
    1c10  vpslld ymm3,ymm2,10h
    1c15  vpsrad ymm3,ymm3,18h
    1c1a  vcvtdq2ps ymm3,ymm3
    1c1e  vmulps ymm3,ymm3,ymm5
    1c22  vbroadcastss ymm4,[rbx+r10+34h]
    1c29  vfmadd231ps ymm8,ymm3,ymm4
    1c2e  vpslld ymm3,ymm2,8
    1c33  vpsrad ymm3,ymm3,18h
    1c38  vcvtdq2ps ymm3,ymm3
    1c3c  vmulps ymm3,ymm3,ymm5
    1c40  vbroadcastss ymm4,[rbx+r10+38h]
    1c47  vfmadd231ps ymm9,ymm3,ymm4
    1c4c  vpsrad ymm3,ymm2,18h
    1c51  vcvtdq2ps ymm3,ymm3
    1c55  vmulps ymm3,ymm3,ymm5
    1c59  vbroadcastss ymm4,[rbx+r10+3Ch]
    1c60  vfmadd231ps ymm10,ymm3,ymm4
    1c65  vmovdqu ymm1,[r9+60h]
    1c6b  vpsrlw ymm2,ymm1,4
    1c70  vpand ymm1,ymm1,[r11]
    1c75  vpand ymm2,ymm2,[r11]
    1c7a  vpsubb ymm1,ymm1,[rel 22F9h]
    1c82  vpsubb ymm2,ymm2,[rel 22F9h]
    1c8a  vpslld ymm3,ymm1,18h
    1c8f  vpsrad ymm3,ymm3,18h
    1c94  vcvtdq2ps ymm3,ymm3
    1c98  vmulps ymm3,ymm3,ymm6
    1c9c  vbroadcastss ymm4,[rbx+r10+20h]
    1ca3  vfmadd231ps ymm11,ymm3,ymm4
    1ca8  vpslld ymm3,ymm1,10h
    1cad  vpsrad ymm3,ymm3,18h
    1cb2  vcvtdq2ps ymm3,ymm3
    1cb6  vmulps ymm3,ymm3,ymm6
    1cba  vbroadcastss ymm4,[rbx+r10+24h]
    1cc1  vfmadd231ps ymm12,ymm3,ymm4
    1cc6  vpslld ymm3,ymm1,8
    1ccb  vpsrad ymm3,ymm3,18h
    1cd0  vcvtdq2ps ymm3,ymm3
    1cd4  vmulps ymm3,ymm3,ymm6
    1cd8  vbroadcastss ymm4,[rbx+r10+28h]
    1cdf  vfmadd231ps ymm13,ymm3,ymm4
    1ce4  vpsrad ymm3,ymm1,18h
    1ce9  vcvtdq2ps ymm3,ymm3
    1ced  vmulps ymm3,ymm3,ymm6
    1cf1  vbroadcastss ymm4,[rbx+r10+2Ch]
    1cf8  vfmadd231ps ymm14,ymm3,ymm4
    1cfd  vpslld ymm3,ymm2,18h
    1d02  vpsrad ymm3,ymm3,18h
    1d07  vcvtdq2ps ymm3,ymm3
    1d0b  vmulps ymm3,ymm3,ymm6
    1d0f  vbroadcastss ymm4,[rbx+r10+30h]
    1d16  vfmadd231ps ymm11,ymm3,ymm4
    1d1b  vpslld ymm3,ymm2,10h
    1d20  vpsrad ymm3,ymm3,18h
    1d25  vcvtdq2ps ymm3,ymm3
    1d29  vmulps ymm3,ymm3,ymm6
    1d2d  vbroadcastss ymm4,[rbx+r10+34h]
    1d34  vfmadd231ps ymm12,ymm3,ymm4
    1d39  vpslld ymm3,ymm2,8
    1d3e  vpsrad ymm3,ymm3,18h
    1d43  vcvtdq2ps ymm3,ymm3
    1d47  vmulps ymm3,ymm3,ymm6
    1d4b  vbroadcastss ymm4,[rbx+r10+38h]
    1d52  vfmadd231ps ymm13,ymm3,ymm4
    1d57  vpsrad ymm3,ymm2,18h
    1d5c  vcvtdq2ps ymm3,ymm3
    1d60  vmulps ymm3,ymm3,ymm6
    1d64  vbroadcastss ymm4,[rbx+r10+3Ch]
    1d6b  vfmadd231ps ymm14,ymm3,ymm4
    1d70  vmovdqu ymm1,[r9+80h]
    1d79  vpsrlw ymm2,ymm1,4
    1d7e  vpand ymm1,ymm1,[r11]
    1d83  vpand ymm2,ymm2,[r11]
    1d88  vpsubb ymm1,ymm1,[rel 22F9h]
    1d90  vpsubb ymm2,ymm2,[rel 22F9h]
    1d98  vpslld ymm3,ymm1,18h
    1d9d  vpsrad ymm3,ymm3,18h
    1da2  vcvtdq2ps ymm3,ymm3
    1da6  vmulps ymm3,ymm3,ymm5
    1daa  vbroadcastss ymm4,[rbx+r10+40h]
    1db1  vfmadd231ps ymm7,ymm3,ymm4
    1db6  vpslld ymm3,ymm1,10h
    1dbb  vpsrad ymm3,ymm3,18h
    1dc0  vcvtdq2ps ymm3,ymm3
    1dc4  vmulps ymm3,ymm3,ymm5
    1dc8  vbroadcastss ymm4,[rbx+r10+44h]
    1dcf  vfmadd231ps ymm8,ymm3,ymm4
    1dd4  vpslld ymm3,ymm1,8
    1dd9  vpsrad ymm3,ymm3,18h
    1dde  vcvtdq2ps ymm3,ymm3
    1de2  vmulps ymm3,ymm3,ymm5
    1de6  vbroadcastss ymm4,[rbx+r10+48h]
    1ded  vfmadd231ps ymm9,ymm3,ymm4
    1df2  vpsrad ymm3,ymm1,18h
    1df7  vcvtdq2ps ymm3,ymm3
    1dfb  vmulps ymm3,ymm3,ymm5
    1dff  vbroadcastss ymm4,[rbx+r10+4Ch]
    1e06  vfmadd231ps ymm10,ymm3,ymm4
    1e0b  vpslld ymm3,ymm2,18h
    1e10  vpsrad ymm3,ymm3,18h
    1e15  vcvtdq2ps ymm3,ymm3
    1e19  vmulps ymm3,ymm3,ymm5
    1e1d  vbroadcastss ymm4,[rbx+r10+50h]
    1e24  vfmadd231ps ymm7,ymm3,ymm4
    1e29  vpslld ymm3,ymm2,10h
    1e2e  vpsrad ymm3,ymm3,18h
    1e33  vcvtdq2ps ymm3,ymm3
    1e37  vmulps ymm3,ymm3,ymm5
    1e3b  vbroadcastss ymm4,[rbx+r10+54h]
    1e42  vfmadd231ps ymm8,ymm3,ymm4
    1e47  vpslld ymm3,ymm2,8
    1e4c  vpsrad ymm3,ymm3,18h
    1e51  vcvtdq2ps ymm3,ymm3
    1e55  vmulps ymm3,ymm3,ymm5
    1e59  vbroadcastss ymm4,[rbx+r10+58h]
    1e60  vfmadd231ps ymm9,ymm3,ymm4
    1e65  vpsrad ymm3,ymm2,18h
    1e6a  vcvtdq2ps ymm3,ymm3
    1e6e  vmulps ymm3,ymm3,ymm5
    1e72  vbroadcastss ymm4,[rbx+r10+5Ch]
    1e79  vfmadd231ps ymm10,ymm3,ymm4
    1e7e  vmovdqu ymm1,[r9+0A0h]
    1e87  vpsrlw ymm2,ymm1,4
    1e8c  vpand ymm1,ymm1,[r11]
    1e91  vpand ymm2,ymm2,[r11]
    1e96  vpsubb ymm1,ymm1,[rel 22F9h]
    1e9e  vpsubb ymm2,ymm2,[rel 22F9h]
    1ea6  vpslld ymm3,ymm1,18h
    1eab  vpsrad ymm3,ymm3,18h
    1eb0  vcvtdq2ps ymm3,ymm3
    1eb4  vmulps ymm3,ymm3,ymm6
    1eb8  vbroadcastss ymm4,[rbx+r10+40h]
    1ebf  vfmadd231ps ymm11,ymm3,ymm4
    1ec4  vpslld ymm3,ymm1,10h
    1ec9  vpsrad ymm3,ymm3,18h
    1ece  vcvtdq2ps ymm3,ymm3
    1ed2  vmulps ymm3,ymm3,ymm6
    1ed6  vbroadcastss ymm4,[rbx+r10+44h]
    1edd  vfmadd231ps ymm12,ymm3,ymm4
    1ee2  vpslld ymm3,ymm1,8
    1ee7  vpsrad ymm3,ymm3,18h
    1eec  vcvtdq2ps ymm3,ymm3
    1ef0  vmulps ymm3,ymm3,ymm6
    1ef4  vbroadcastss ymm4,[rbx+r10+48h]
    1efb  vfmadd231ps ymm13,ymm3,ymm4
    1f00  vpsrad ymm3,ymm1,18h
    1f05  vcvtdq2ps ymm3,ymm3
    1f09  vmulps ymm3,ymm3,ymm6
    1f0d  vbroadcastss ymm4,[rbx+r10+4Ch]
    1f14  vfmadd231ps ymm14,ymm3,ymm4
    1f19  vpslld ymm3,ymm2,18h
    1f1e  vpsrad ymm3,ymm3,18h
    1f23  vcvtdq2ps ymm3,ymm3
    1f27  vmulps ymm3,ymm3,ymm6
    1f2b  vbroadcastss ymm4,[rbx+r10+50h]
    1f32  vfmadd231ps ymm11,ymm3,ymm4
    1f37  vpslld ymm3,ymm2,10h
    1f3c  vpsrad ymm3,ymm3,18h
    1f41  vcvtdq2ps ymm3,ymm3
    1f45  vmulps ymm3,ymm3,ymm6
    1f49  vbroadcastss ymm4,[rbx+r10+54h]
    1f50  vfmadd231ps ymm12,ymm3,ymm4
    1f55  vpslld ymm3,ymm2,8
    1f5a  vpsrad ymm3,ymm3,18h
    1f5f  vcvtdq2ps ymm3,ymm3
    1f63  vmulps ymm3,ymm3,ymm6
    1f67  vbroadcastss ymm4,[rbx+r10+58h]
    1f6e  vfmadd231ps ymm13,ymm3,ymm4
    1f73  vpsrad ymm3,ymm2,18h
    1f78  vcvtdq2ps ymm3,ymm3
    1f7c  vmulps ymm3,ymm3,ymm6
    1f80  vbroadcastss ymm4,[rbx+r10+5Ch]
    1f87  vfmadd231ps ymm14,ymm3,ymm4
    1f8c  vmovdqu ymm1,[r9+0C0h]
    1f95  vpsrlw ymm2,ymm1,4
    1f9a  vpand ymm1,ymm1,[r11]
    1f9f  vpand ymm2,ymm2,[r11]
    1fa4  vpsubb ymm1,ymm1,[rel 22F9h]
    1fac  vpsubb ymm2,ymm2,[rel 22F9h]
    1fb4  vpslld ymm3,ymm1,18h
    1fb9  vpsrad ymm3,ymm3,18h
    1fbe  vcvtdq2ps ymm3,ymm3
    1fc2  vmulps ymm3,ymm3,ymm5
    1fc6  vbroadcastss ymm4,[rbx+r10+60h]
    1fcd  vfmadd231ps ymm7,ymm3,ymm4
    1fd2  vpslld ymm3,ymm1,10h
    1fd7  vpsrad ymm3,ymm3,18h
    1fdc  vcvtdq2ps ymm3,ymm3
    1fe0  vmulps ymm3,ymm3,ymm5
    1fe4  vbroadcastss ymm4,[rbx+r10+64h]
    1feb  vfmadd231ps ymm8,ymm3,ymm4
    1ff0  vpslld ymm3,ymm1,8
    1ff5  vpsrad ymm3,ymm3,18h
    1ffa  vcvtdq2ps ymm3,ymm3
    1ffe  vmulps ymm3,ymm3,ymm5
    2002  vbroadcastss ymm4,[rbx+r10+68h]
    2009  vfmadd231ps ymm9,ymm3,ymm4
    200e  vpsrad ymm3,ymm1,18h
    2013  vcvtdq2ps ymm3,ymm3
    2017  vmulps ymm3,ymm3,ymm5
    201b  vbroadcastss ymm4,[rbx+r10+6Ch]
    2022  vfmadd231ps ymm10,ymm3,ymm4
    2027  vpslld ymm3,ymm2,18h
    202c  vpsrad ymm3,ymm3,18h
    2031  vcvtdq2ps ymm3,ymm3
    2035  vmulps ymm3,ymm3,ymm5
    2039  vbroadcastss ymm4,[rbx+r10+70h]
    2040  vfmadd231ps ymm7,ymm3,ymm4
    2045  vpslld ymm3,ymm2,10h
    204a  vpsrad ymm3,ymm3,18h
    204f  vcvtdq2ps ymm3,ymm3
    2053  vmulps ymm3,ymm3,ymm5
    2057  vbroadcastss ymm4,[rbx+r10+74h]
    205e  vfmadd231ps ymm8,ymm3,ymm4
    2063  vpslld ymm3,ymm2,8
    2068  vpsrad ymm3,ymm3,18h
    206d  vcvtdq2ps ymm3,ymm3
    2071  vmulps ymm3,ymm3,ymm5
    2075  vbroadcastss ymm4,[rbx+r10+78h]
    207c  vfmadd231ps ymm9,ymm3,ymm4
    2081  vpsrad ymm3,ymm2,18h
    2086  vcvtdq2ps ymm3,ymm3
    208a  vmulps ymm3,ymm3,ymm5
    208e  vbroadcastss ymm4,[rbx+r10+7Ch]
    2095  vfmadd231ps ymm10,ymm3,ymm4
    209a  vmovdqu ymm1,[r9+0E0h]
    20a3  vpsrlw ymm2,ymm1,4
    20a8  vpand ymm1,ymm1,[r11]
    20ad  vpand ymm2,ymm2,[r11]
    20b2  vpsubb ymm1,ymm1,[rel 22F9h]
    20ba  vpsubb ymm2,ymm2,[rel 22F9h]
    20c2  vpslld ymm3,ymm1,18h
    20c7  vpsrad ymm3,ymm3,18h
    20cc  vcvtdq2ps ymm3,ymm3
    20d0  vmulps ymm3,ymm3,ymm6
    20d4  vbroadcastss ymm4,[rbx+r10+60h]
    20db  vfmadd231ps ymm11,ymm3,ymm4
    20e0  vpslld ymm3,ymm1,10h
    20e5  vpsrad ymm3,ymm3,18h
    20ea  vcvtdq2ps ymm3,ymm3
    20ee  vmulps ymm3,ymm3,ymm6
    20f2  vbroadcastss ymm4,[rbx+r10+64h]
    20f9  vfmadd231ps ymm12,ymm3,ymm4
    20fe  vpslld ymm3,ymm1,8
    2103  vpsrad ymm3,ymm3,18h
    2108  vcvtdq2ps ymm3,ymm3
    210c  vmulps ymm3,ymm3,ymm6
    2110  vbroadcastss ymm4,[rbx+r10+68h]
    2117  vfmadd231ps ymm13,ymm3,ymm4
    211c  vpsrad ymm3,ymm1,18h
    2121  vcvtdq2ps ymm3,ymm3
    2125  vmulps ymm3,ymm3,ymm6
    2129  vbroadcastss ymm4,[rbx+r10+6Ch]
    2130  vfmadd231ps ymm14,ymm3,ymm4
    2135  vpslld ymm3,ymm2,18h
    213a  vpsrad ymm3,ymm3,18h
    213f  vcvtdq2ps ymm3,ymm3
    2143  vmulps ymm3,ymm3,ymm6
    2147  vbroadcastss ymm4,[rbx+r10+70h]
    214e  vfmadd231ps ymm11,ymm3,ymm4
    2153  vpslld ymm3,ymm2,10h
    2158  vpsrad ymm3,ymm3,18h
    215d  vcvtdq2ps ymm3,ymm3
    2161  vmulps ymm3,ymm3,ymm6
    2165  vbroadcastss ymm4,[rbx+r10+74h]
    216c  vfmadd231ps ymm12,ymm3,ymm4
    2171  vpslld ymm3,ymm2,8
    2176  vpsrad ymm3,ymm3,18h
    217b  vcvtdq2ps ymm3,ymm3
    217f  vmulps ymm3,ymm3,ymm6
    2183  vbroadcastss ymm4,[rbx+r10+78h]
    218a  vfmadd231ps ymm13,ymm3,ymm4
    218f  vpsrad ymm3,ymm2,18h
    2194  vcvtdq2ps ymm3,ymm3
    2198  vmulps ymm3,ymm3,ymm6
    219c  vbroadcastss ymm4,[rbx+r10+7Ch]
    21a3  vfmadd231ps ymm14,ymm3,ymm4
    21a8  add r8,20h
    21ac  add r9,100h
    21b3  add r10,80h
    21ba  cmp r10,100h
    21c1  jne near 000000000000193Ch
    21c7  mov rax,rdx
    21ca  vaddps ymm7,ymm7,ymm8
    21cf  vaddps ymm9,ymm9,ymm10
    21d4  vaddps ymm7,ymm7,ymm9
    21d9  vmovups [rax],ymm7
    21dd  vaddps ymm11,ymm11,ymm12
    21e2  vaddps ymm13,ymm13,ymm14
    21e7  vaddps ymm11,ymm11,ymm13
    21ec  vmovups [rax+20h],ymm11
    21f1  add rax,rcx
    21f4  vzeroupper
    21f7  pop rbx
    21f8  ret
    21f9  (bad)
    21fd  (bad)
    2201  (bad)
    2205  (bad)
    2209  (bad)
    220d  (bad)
    2211  (bad)
    2215  (bad)
    2219  or al,0Dh
    221b  (bad)
    221d  adc [rdx],dl
    221f  adc al,18h
    2221  or al,0Bh
    2223  or cl,[rcx]
    2225  or [rsi],al
    2227  add al,0
    2229  or al,0Dh
    222b  (bad)
    222d  adc [rdx],dl
    222f  adc al,18h
    2231  or al,0Bh
    2233  or cl,[rcx]
    2235  or [rsi],al
    2237  add al,0
    2239  add [rax],eax
    223b  add [rax],eax
    223d  add [rax],eax
    223f  add [rax],eax
    2241  add [rax],eax
    2243  add [rax],eax
    2245  add [rax],eax
    2247  add [rax],eax
    2249  add [rax],eax
    224b  add [rax],eax
    224d  add [rax],eax
    224f  add [rax],eax
    2251  add [rax],eax
    2253  add [rax],eax
    2255  add [rax],eax
    2257  add [rax],eax
    2259  add byte [rax-7F7F7F80h],80h
    2260  add byte [rax-7F7F7F80h],80h
    2267  add byte [rax-7F7F7F80h],80h
    226e  add byte [rax-7F7F7F80h],80h
    2275  add byte [rax+8080h],40h
    227c  add [rax],al
    227e  add [rax],al
    2281  add [rax],al
    2283  add [rax],al
    2286  add [rax],al
    2289  add [rax],al
    228b  add [rax],al
    228e  add [rax],al
    2291  add [rax],al
    2293  add [rax],al
    2296  add [rax],al
    2299  add [rax],al
    229b  add [rdi],bh
    229d  add [rax],al
    229f  add [rdi],bh
    22a1  add [rax],al
    22a3  add [rdi],bh
    22a5  add [rax],al
    22a7  add [rdi],bh
    22a9  add [rax],al
    22ab  add [rdi],bh
    22ad  add [rax],al
    22af  add [rdi],bh
    22b1  add [rax],al
    22b3  add [rdi],bh
    22b5  add [rax],al
    22b7  add [rdi],bh
    22b9  clc
    22ba  (bad)
    22bc  (bad)
    22be  (bad)
    22c0  (bad)
    22c2  (bad)
    22c4  (bad)
    22c6  (bad)
    22c8  (bad)
    22ca  (bad)
    22cc  (bad)
    22ce  (bad)
    22d0  (bad)
    22d2  (bad)
    22d4  (bad)
    22d6  (bad)
    22d8  inc dword [rax]
    22da  add [rax-35h],al
    22dd  add [rax],al
    22df  retf
    22e1  add [rax],al
    22e3  retf
    22e5  add [rax],al
    22e7  retf
    22e9  add [rax],al
    22eb  retf
    22ed  add [rax],al
    22ef  retf
    22f1  add [rax],al
    22f3  retf
    22f5  add [rax],al
    22f7  retf
    22f9  or [rax],cl
    22fb  or [rax],cl
    22fd  or [rax],cl
    22ff  or [rax],cl
    2301  or [rax],cl
    2303  or [rax],cl
    2305  or [rax],cl
    2307  or [rax],cl
    2309  or [rax],cl
    230b  or [rax],cl
    230d  or [rax],cl
    230f  or [rax],cl
    2311  or [rax],cl
    2313  or [rax],cl
    2315  or [rax],cl
    2317  or [rax],cl

score_F16_d32_g2_s3e000000:
    2340  cmp rcx,1
    2344  jl near 00000000000025A1h
    234a  mov r8,[rdi]
    234d  mov r9,[rdi+40h]
    2351  prefetcht1 [r9]
    2355  prefetcht1 [r9+40h]
    235a  prefetcht1 [r9+80h]
    2362  prefetcht1 [r9+0C0h]
    236a  prefetcht1 [r9+100h]
    2372  prefetcht1 [r9+140h]
    237a  prefetcht1 [r9+180h]
    2382  prefetcht1 [r9+1C0h]
    238a  vpxor ymm3,ymm3,ymm3
    238e  vpxor ymm4,ymm4,ymm4
    2392  vpxor ymm5,ymm5,ymm5
    2396  vpxor ymm6,ymm6,ymm6
    239a  vpxor ymm7,ymm7,ymm7
    239e  vpxor ymm8,ymm8,ymm8
    23a3  vpxor ymm9,ymm9,ymm9
    23a8  vpxor ymm10,ymm10,ymm10
    23ad  xor r10,r10
    23b0  xor r11,r11
    23b3  vcvtph2ps ymm0,[r8+r10]
    23b9  vcvtph2ps ymm1,[r8+r10+10h]
    23c0  vbroadcastss ymm2,[rsi+r11]
    23c6  vfmadd231ps ymm3,ymm0,ymm2
    23cb  vfmadd231ps ymm4,ymm1,ymm2
    23d0  vbroadcastss ymm2,[rsi+r11+80h]
    23da  vfmadd231ps ymm5,ymm0,ymm2
    23df  vfmadd231ps ymm6,ymm1,ymm2
    23e4  vcvtph2ps ymm0,[r8+r10+20h]
    23eb  vcvtph2ps ymm1,[r8+r10+30h]
    23f2  vbroadcastss ymm2,[rsi+r11+4]
    23f9  vfmadd231ps ymm7,ymm0,ymm2
    23fe  vfmadd231ps ymm8,ymm1,ymm2
    2403  vbroadcastss ymm2,[rsi+r11+84h]
    240d  vfmadd231ps ymm9,ymm0,ymm2
    2412  vfmadd231ps ymm10,ymm1,ymm2
    2417  add r10,80h
    241e  add r11,10h
    2422  cmp r11,80h
    2429  jne short 00000000000023B3h
    242b  vaddps ymm11,ymm3,ymm7
    242f  vaddps ymm12,ymm4,ymm8
    2434  vaddps ymm13,ymm5,ymm9
    2439  vaddps ymm14,ymm6,ymm10
    243e  prefetcht1 [r9+200h]
    2446  prefetcht1 [r9+240h]
    244e  prefetcht1 [r9+280h]
    2456  prefetcht1 [r9+2C0h]
    245e  prefetcht1 [r9+300h]
    2466  prefetcht1 [r9+340h]
    246e  prefetcht1 [r9+380h]
    2476  prefetcht1 [r9+3C0h]
    247e  vpxor ymm3,ymm3,ymm3
    2482  vpxor ymm4,ymm4,ymm4
    2486  vpxor ymm5,ymm5,ymm5
    248a  vpxor ymm6,ymm6,ymm6
    248e  vpxor ymm7,ymm7,ymm7
    2492  vpxor ymm8,ymm8,ymm8
    2497  vpxor ymm9,ymm9,ymm9
    249c  vpxor ymm10,ymm10,ymm10
    24a1  xor r10,r10
    24a4  xor r11,r11
    24a7  vcvtph2ps ymm0,[r8+r10+40h]
    24ae  vcvtph2ps ymm1,[r8+r10+50h]
    24b5  vbroadcastss ymm2,[rsi+r11+8]
    24bc  vfmadd231ps ymm3,ymm0,ymm2
    24c1  vfmadd231ps ymm4,ymm1,ymm2
    24c6  vbroadcastss ymm2,[rsi+r11+88h]
    24d0  vfmadd231ps ymm5,ymm0,ymm2
    24d5  vfmadd231ps ymm6,ymm1,ymm2
    24da  vcvtph2ps ymm0,[r8+r10+60h]
    24e1  vcvtph2ps ymm1,[r8+r10+70h]
    24e8  vbroadcastss ymm2,[rsi+r11+0Ch]
    24ef  vfmadd231ps ymm7,ymm0,ymm2
    24f4  vfmadd231ps ymm8,ymm1,ymm2
    24f9  vbroadcastss ymm2,[rsi+r11+8Ch]
    2503  vfmadd231ps ymm9,ymm0,ymm2
    2508  vfmadd231ps ymm10,ymm1,ymm2
    250d  add r10,80h
    2514  add r11,10h
    2518  cmp r11,80h
    251f  jne short 00000000000024A7h
    2521  vaddps ymm3,ymm3,ymm7
    2525  vaddps ymm3,ymm11,ymm3
    2529  vbroadcastss ymm2,[rel 25A5h]
    2532  vmulps ymm3,ymm3,ymm2
    2536  vmovups [rdx],ymm3
    253a  vaddps ymm4,ymm4,ymm8
    253f  vaddps ymm4,ymm12,ymm4
    2543  vbroadcastss ymm2,[rel 25A5h]
    254c  vmulps ymm4,ymm4,ymm2
    2550  vmovups [rdx+20h],ymm4
    2555  vaddps ymm5,ymm5,ymm9
    255a  vaddps ymm5,ymm13,ymm5
    255e  vbroadcastss ymm2,[rel 25A5h]
    2567  vmulps ymm5,ymm5,ymm2
    256b  vmovups [rdx+1040h],ymm5
    2573  vaddps ymm6,ymm6,ymm10
    2578  vaddps ymm6,ymm14,ymm6
    257c  vbroadcastss ymm2,[rel 25A5h]
    2585  vmulps ymm6,ymm6,ymm2
    2589  vmovups [rdx+1060h],ymm6
    2591  add rdi,8
    2595  add rdx,40h
    2599  dec rcx
    259c  jmp 0000000000002340h
    25a1  vzeroupper
    25a4  ret
    25a5  add [rax],al
    25a7  add [rsi],bh

value_F16_d32_g2:
    25c0  push rbx
    25c1  push rbp
    25c2  push r12
    25c4  push r13
    25c6  cmp r8,r9
    25c9  jge near 000000000000278Bh
    25cf  vmovups ymm3,[rdx]
    25d3  vmovups ymm4,[rdx+20h]
    25d8  vmovups ymm5,[rdx+80h]
    25e0  vmovups ymm6,[rdx+0A0h]
    25e8  imul r13,r8,40h
    25ec  mov rbx,r8
    25ef  xor r12,r12
    25f2  xor rbp,rbp
    25f5  mov r10,[rdi+r12*8]
    25f9  add r10,r13
    25fc  xor r13,r13
    25ff  mov r11,[rdi+r12*8+40h]
    2604  prefetcht1 [r11]
    2608  prefetcht1 [r11+40h]
    260d  prefetcht1 [r11+80h]
    2615  prefetcht1 [r11+0C0h]
    261d  prefetcht1 [r11+100h]
    2625  prefetcht1 [r11+140h]
    262d  prefetcht1 [r11+180h]
    2635  prefetcht1 [r11+1C0h]
    263d  add rbp,10h
    2641  cmp rbp,r9
    2644  cmovg rbp,r9
    2648  vcvtph2ps ymm1,[r10]
    264d  vcvtph2ps ymm2,[r10+10h]
    2653  vbroadcastss ymm0,[rsi+rbx*4]
    2659  vfmadd231ps ymm3,ymm1,ymm0
    265e  vfmadd231ps ymm4,ymm2,ymm0
    2663  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    266d  vfmadd231ps ymm5,ymm1,ymm0
    2672  vfmadd231ps ymm6,ymm2,ymm0
    2677  add r10,40h
    267b  inc rbx
    267e  cmp rbx,rbp
    2681  jl short 0000000000002648h
    2683  inc r12
    2686  cmp r12,rcx
    2689  jl near 00000000000025F5h
    268f  vmovups [rdx],ymm3
    2693  vmovups [rdx+20h],ymm4
    2698  vmovups [rdx+80h],ymm5
    26a0  vmovups [rdx+0A0h],ymm6
    26a8  vmovups ymm3,[rdx+40h]
    26ad  vmovups ymm4,[rdx+60h]
    26b2  vmovups ymm5,[rdx+0C0h]
    26ba  vmovups ymm6,[rdx+0E0h]
    26c2  imul r13,r8,40h
    26c6  mov rbx,r8
    26c9  xor r12,r12
    26cc  xor rbp,rbp
    26cf  mov r10,[rdi+r12*8]
    26d3  add r10,r13
    26d6  xor r13,r13
    26d9  mov r11,[rdi+r12*8+40h]
    26de  prefetcht1 [r11+200h]
    26e6  prefetcht1 [r11+240h]
    26ee  prefetcht1 [r11+280h]
    26f6  prefetcht1 [r11+2C0h]
    26fe  prefetcht1 [r11+300h]
    2706  prefetcht1 [r11+340h]
    270e  prefetcht1 [r11+380h]
    2716  prefetcht1 [r11+3C0h]
    271e  add rbp,10h
    2722  cmp rbp,r9
    2725  cmovg rbp,r9
    2729  vcvtph2ps ymm1,[r10+20h]
    272f  vcvtph2ps ymm2,[r10+30h]
    2735  vbroadcastss ymm0,[rsi+rbx*4]
    273b  vfmadd231ps ymm3,ymm1,ymm0
    2740  vfmadd231ps ymm4,ymm2,ymm0
    2745  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    274f  vfmadd231ps ymm5,ymm1,ymm0
    2754  vfmadd231ps ymm6,ymm2,ymm0
    2759  add r10,40h
    275d  inc rbx
    2760  cmp rbx,rbp
    2763  jl short 0000000000002729h
    2765  inc r12
    2768  cmp r12,rcx
    276b  jl near 00000000000026CFh
    2771  vmovups [rdx+40h],ymm3
    2776  vmovups [rdx+60h],ymm4
    277b  vmovups [rdx+0C0h],ymm5
    2783  vmovups [rdx+0E0h],ymm6
    278b  vzeroupper
    278e  pop r13
    2790  pop r12
    2792  pop rbp
    2793  pop rbx
    2794  ret

softmax:
    27c0  push rbx
    27c1  cmp rsi,1
    27c5  jl near 0000000000002A4Eh
    27cb  lea r10,[rel 2A53h]
    27d2  imul rbx,rsi,40h
    27d6  mov rax,rdx
    27d9  xor r11,r11
    27dc  vmovd xmm5,eax
    27e0  vpbroadcastd ymm5,xmm5
    27e5  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    27ee  vmovups ymm6,[rdi+r11]
    27f4  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    27fe  vmovups [rdi+r11],ymm6
    2804  vpcmpgtd ymm7,ymm5,[r10+200h]
    280d  vmovups ymm6,[rdi+r11+20h]
    2814  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    281e  vmovups [rdi+r11+20h],ymm6
    2825  imul r11,rsi,10h
    2829  mov rax,rcx
    282c  sub rax,r11
    282f  add rax,10h
    2835  mov r11,rbx
    2838  sub r11,40h
    283c  vmovd xmm5,eax
    2840  vpbroadcastd ymm5,xmm5
    2845  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    284e  vmovups ymm6,[r10+1C0h]
    2857  vblendvps ymm6,ymm6,[rdi+r11],ymm7
    285e  vmovups [rdi+r11],ymm6
    2864  vpcmpgtd ymm7,ymm5,[r10+200h]
    286d  vmovups ymm6,[r10+1C0h]
    2876  vblendvps ymm6,ymm6,[rdi+r11+20h],ymm7
    287e  vmovups [rdi+r11+20h],ymm6
    2885  vmovups ymm0,[r10+1C0h]
    288e  vmovups ymm1,[r10+1C0h]
    2897  xor r11,r11
    289a  vmovups ymm4,[rdi+r11]
    28a0  vmaxps ymm0,ymm4,ymm0
    28a4  vmovups ymm4,[rdi+r11+20h]
    28ab  vmaxps ymm1,ymm4,ymm1
    28af  add r11,40h
    28b3  cmp r11,rbx
    28b6  jl short 000000000000289Ah
    28b8  vmaxps ymm0,ymm1,ymm0
    28bc  vperm2f128 ymm4,ymm0,ymm0,1
    28c2  vmaxps ymm0,ymm4,ymm0
    28c6  vpshufd ymm4,ymm0,4Eh
    28cb  vmaxps ymm0,ymm4,ymm0
    28cf  vpshufd ymm4,ymm0,0B1h
    28d4  vmaxps ymm0,ymm4,ymm0
    28d8  vmovss [r8],xmm0
    28dd  vpxor ymm2,ymm2,ymm2
    28e1  vpxor ymm3,ymm3,ymm3
    28e5  xor r11,r11
    28e8  vmovups ymm4,[rdi+r11]
    28ee  vsubps ymm4,ymm4,ymm0
    28f2  vcmpltps ymm7,ymm4,[r10+0A0h]
    28fc  vminps ymm4,ymm4,[r10]
    2901  vmovups ymm5,[r10+20h]
    2907  vfmadd213ps ymm5,ymm4,[r10+40h]
    290d  vsubps ymm6,ymm5,[r10+40h]
    2913  vfmadd231ps ymm4,ymm6,[r10+60h]
    2919  vfmadd231ps ymm4,ymm6,[r10+80h]
    2922  vmovups ymm6,[r10+0C0h]
    292b  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    2934  vfmadd213ps ymm6,ymm4,[r10+100h]
    293d  vfmadd213ps ymm6,ymm4,[r10+120h]
    2946  vfmadd213ps ymm6,ymm4,[r10+140h]
    294f  vfmadd213ps ymm6,ymm4,[r10+160h]
    2958  vfmadd213ps ymm6,ymm4,[r10+180h]
    2961  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    296a  vpslld ymm5,ymm5,17h
    296f  vpaddd ymm6,ymm6,ymm5
    2973  vandnps ymm4,ymm7,ymm6
    2977  vmovups [rdi+r11],ymm4
    297d  vaddps ymm2,ymm2,ymm4
    2981  vmovups ymm4,[rdi+r11+20h]
    2988  vsubps ymm4,ymm4,ymm0
    298c  vcmpltps ymm7,ymm4,[r10+0A0h]
    2996  vminps ymm4,ymm4,[r10]
    299b  vmovups ymm5,[r10+20h]
    29a1  vfmadd213ps ymm5,ymm4,[r10+40h]
    29a7  vsubps ymm6,ymm5,[r10+40h]
    29ad  vfmadd231ps ymm4,ymm6,[r10+60h]
    29b3  vfmadd231ps ymm4,ymm6,[r10+80h]
    29bc  vmovups ymm6,[r10+0C0h]
    29c5  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    29ce  vfmadd213ps ymm6,ymm4,[r10+100h]
    29d7  vfmadd213ps ymm6,ymm4,[r10+120h]
    29e0  vfmadd213ps ymm6,ymm4,[r10+140h]
    29e9  vfmadd213ps ymm6,ymm4,[r10+160h]
    29f2  vfmadd213ps ymm6,ymm4,[r10+180h]
    29fb  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    2a04  vpslld ymm5,ymm5,17h
    2a09  vpaddd ymm6,ymm6,ymm5
    2a0d  vandnps ymm4,ymm7,ymm6
    2a11  vmovups [rdi+r11+20h],ymm4
    2a18  vaddps ymm3,ymm3,ymm4
    2a1c  add r11,40h
    2a20  cmp r11,rbx
    2a23  jl near 00000000000028E8h
    2a29  vaddps ymm2,ymm2,ymm3
    2a2d  vperm2f128 ymm4,ymm2,ymm2,1
    2a33  vaddps ymm2,ymm2,ymm4
    2a37  vpshufd ymm4,ymm2,4Eh
    2a3c  vaddps ymm2,ymm2,ymm4
    2a40  vpshufd ymm4,ymm2,0B1h
    2a45  vaddps ymm2,ymm2,ymm4
    2a49  vmovss [r9],xmm2
    2a4e  vzeroupper
    2a51  pop rbx
    2a52  ret
    2a53  add [rax],al
    2a55  mov al,42h
    2a57  add [rax],al
    2a59  mov al,42h
    2a5b  add [rax],al
    2a5d  mov al,42h
    2a5f  add [rax],al
    2a61  mov al,42h
    2a63  add [rax],al
    2a65  mov al,42h
    2a67  add [rax],al
    2a69  mov al,42h
    2a6b  add [rax],al
    2a6d  mov al,42h
    2a6f  add [rax],al
    2a71  mov al,42h
    2a73  cmp ebp,[rdx-55C4C048h]
    2a79  mov eax,0B8AA3B3Fh
    2a7e  (bad)
    2a80  stosb
    2a81  mov eax,0B8AA3B3Fh
    2a86  (bad)
    2a88  stosb
    2a89  mov eax,0B8AA3B3Fh
    2a8e  (bad)
    2a90  stosb
    2a91  mov eax,4000003Fh
    2a96  add [r8],al
    2a99  add [r8],al
    2a9d  add [r8],al
    2aa1  add [r8],al
    2aa5  add [r8],al
    2aa9  add [r8],al
    2aad  add [r8],al
    2ab1  add [r10+31h],sil
    2ab6  mov edi,0BF317200h
    2abb  add [rdx+31h],dh
    2abe  mov edi,0BF317200h
    2ac3  add [rdx+31h],dh
    2ac6  mov edi,0BF317200h
    2acb  add [rdx+31h],dh
    2ace  mov edi,0BF317200h
    2ad3  (bad)
    2ad9  mov edi,0BFBE8EB5h
    2ade  mov ch,8Eh
    2ae0  mov esi,0BE8EB5BFh
    2ae5  mov edi,0BFBE8EB5h
    2aea  mov ch,8Eh
    2aec  mov esi,0BE8EB5BFh
    2af1  mov edi,0AE0000B5h
    2af6  ret 0
    2af9  scasb
    2afa  ret 0
    2afd  scasb
    2afe  ret 0
    2b01  scasb
    2b02  ret 0
    2b05  scasb
    2b06  ret 0
    2b09  scasb
    2b0a  ret 0
    2b0d  scasb
    2b0e  ret 0
    2b11  scasb
    2b12  ret 6967h
    2b15  push rax
    2b16  cmp [rdi+69h],esp
    2b19  push rax
    2b1a  cmp [rdi+69h],esp
    2b1d  push rax
    2b1e  cmp [rdi+69h],esp
    2b21  push rax
    2b22  cmp [rdi+69h],esp
    2b25  push rax
    2b26  cmp [rdi+69h],esp
    2b29  push rax
    2b2a  cmp [rdi+69h],esp
    2b2d  push rax
    2b2e  cmp [rdi+69h],esp
    2b31  push rax
    2b32  cmp esi,ecx
    2b34  mov r15b,3Ah
    2b37  (bad)
    2b39  mov bh,3Ah
    2b3b  (bad)
    2b3d  mov bh,3Ah
    2b3f  (bad)
    2b41  mov bh,3Ah
    2b43  (bad)
    2b45  mov bh,3Ah
    2b47  (bad)
    2b49  mov bh,3Ah
    2b4b  (bad)
    2b4d  mov bh,3Ah
    2b4f  (bad)
    2b51  mov bh,3Ah
    2b53  or [rcx-76F7C3F8h],cl
    2b59  or [rax+rcx],bh
    2b5c  mov [rax],ecx
    2b5e  cmp al,8
    2b60  mov [rax],ecx
    2b62  cmp al,8
    2b64  mov [rax],ecx
    2b66  cmp al,8
    2b68  mov [rax],ecx
    2b6a  cmp al,8
    2b6c  mov [rax],ecx
    2b6e  cmp al,8
    2b70  mov [rax],ecx
    2b72  cmp al,0C1h
    2b74  test eax,0A9C13D2Ah
    2b79  sub bh,[rel 3D2AD540h]
    2b7f  shr dword [rcx-563EC2D6h],2Ah
    2b86  cmp eax,3D2AA9C1h
    2b8b  shr dword [rcx-563EC2D6h],2Ah
    2b92  cmp eax,3E2AAAAAh
    2b97  stosb
    2b98  stosb
    2b99  sub bh,[rsi]
    2b9b  stosb
    2b9c  stosb
    2b9d  sub bh,[rsi]
    2b9f  stosb
    2ba0  stosb
    2ba1  sub bh,[rsi]
    2ba3  stosb
    2ba4  stosb
    2ba5  sub bh,[rsi]
    2ba7  stosb
    2ba8  stosb
    2ba9  sub bh,[rsi]
    2bab  stosb
    2bac  stosb
    2bad  sub bh,[rsi]
    2baf  stosb
    2bb0  stosb
    2bb1  sub bh,[rsi]
    2bb3  add [rax],al
    2bb5  add [rdi],bh
    2bb7  add [rax],al
    2bb9  add [rdi],bh
    2bbb  add [rax],al
    2bbd  add [rdi],bh
    2bbf  add [rax],al
    2bc1  add [rdi],bh
    2bc3  add [rax],al
    2bc5  add [rdi],bh
    2bc7  add [rax],al
    2bc9  add [rdi],bh
    2bcb  add [rax],al
    2bcd  add [rdi],bh
    2bcf  add [rax],al
    2bd1  add [rdi],bh
    2bd3  add [rax],al
    2bd5  cmp byte [rdi],0
    2bd8  add [rax-7FFFFFC1h],al
    2bde  (bad)
    2be0  add [rax-7FFFFFC1h],al
    2be6  (bad)
    2be8  add [rax-7FFFFFC1h],al
    2bee  (bad)
    2bf0  add [rax-7FFFFFC1h],al
    2bf6  (bad)
    2bf8  add [rax-7FFFFFC1h],al
    2bfe  (bad)
    2c00  add [rax-7FFFFFC1h],al
    2c06  (bad)
    2c08  add [rax-7FFFFFC1h],al
    2c0e  (bad)
    2c10  add [rax-7FFFFFC1h],al
    2c16  inc dword [rax]
    2c18  add [rax-7FFFFF01h],al
    2c1e  inc dword [rax]
    2c20  add [rax-7FFFFF01h],al
    2c26  inc dword [rax]
    2c28  add [rax-7FFFFF01h],al
    2c2e  inc dword [rax]
    2c30  add [rax+0FFh],al
    2c36  add [rcx],al
    2c38  add [rax],al
    2c3a  add [rdx],al
    2c3c  add [rax],al
    2c3e  add [rbx],al
    2c40  add [rax],al
    2c42  add [rax+rax],al
    2c45  add [rax],al
    2c47  add eax,6000000h
    2c4c  add [rax],al
    2c4e  add [rdi],al
    2c50  add [rax],al
    2c52  add [rax],cl
    2c54  add [rax],al
    2c56  add [rcx],cl
    2c58  add [rax],al
    2c5a  add [rdx],cl
    2c5c  add [rax],al
    2c5e  add [rbx],cl
    2c60  add [rax],al
    2c62  add [rax+rax],cl
    2c65  add [rax],al
    2c67  or eax,0E000000h
    2c6c  add [rax],al
    2c6e  add [rdi],cl
    2c70  add [rax],al
    2c72  (bad)

combine_d32_g1_sinks:
    2c80  push rbx
    2c81  push rbp
    2c82  lea rbp,[rel 2E55h]
    2c89  vbroadcastss ymm0,[rcx]
    2c8e  mov r10,r9
    2c91  xor rbx,rbx
    2c94  cmp r10,1
    2c98  jl short 0000000000002CADh
    2c9a  vbroadcastss ymm2,[rsi+rbx]
    2ca0  vmaxps ymm0,ymm2,ymm0
    2ca4  add rbx,4
    2ca8  dec r10
    2cab  jmp short 0000000000002C94h
    2cad  vpxor ymm4,ymm4,ymm4
    2cb1  vpxor ymm5,ymm5,ymm5
    2cb5  vpxor ymm6,ymm6,ymm6
    2cb9  vpxor ymm7,ymm7,ymm7
    2cbd  vpxor ymm1,ymm1,ymm1
    2cc1  mov r10,r9
    2cc4  mov r11,rdi
    2cc7  xor rbx,rbx
    2cca  cmp r10,1
    2cce  jl near 0000000000002D97h
    2cd4  vbroadcastss ymm2,[rsi+rbx]
    2cda  vsubps ymm2,ymm2,ymm0
    2cde  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2ce7  vminps ymm2,ymm2,[rbp]
    2cec  vmovups ymm12,[rbp+20h]
    2cf1  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2cf7  vsubps ymm13,ymm12,[rbp+40h]
    2cfc  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2d02  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2d0b  vmovups ymm13,[rbp+0C0h]
    2d13  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2d1c  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2d25  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2d2e  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2d37  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2d40  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2d49  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2d52  vpslld ymm12,ymm12,17h
    2d58  vpaddd ymm13,ymm13,ymm12
    2d5d  vandnps ymm2,ymm14,ymm13
    2d62  vbroadcastss ymm3,[rdx+rbx]
    2d68  vfmadd231ps ymm1,ymm2,ymm3
    2d6d  vfmadd231ps ymm4,ymm2,[r11]
    2d72  vfmadd231ps ymm5,ymm2,[r11+20h]
    2d78  vfmadd231ps ymm6,ymm2,[r11+40h]
    2d7e  vfmadd231ps ymm7,ymm2,[r11+60h]
    2d84  add rbx,4
    2d88  add r11,80h
    2d8f  dec r10
    2d92  jmp 0000000000002CCAh
    2d97  vbroadcastss ymm2,[rcx]
    2d9c  vsubps ymm2,ymm2,ymm0
    2da0  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2da9  vminps ymm2,ymm2,[rbp]
    2dae  vmovups ymm12,[rbp+20h]
    2db3  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2db9  vsubps ymm13,ymm12,[rbp+40h]
    2dbe  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2dc4  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2dcd  vmovups ymm13,[rbp+0C0h]
    2dd5  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2dde  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2de7  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2df0  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2df9  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2e02  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2e0b  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2e14  vpslld ymm12,ymm12,17h
    2e1a  vpaddd ymm13,ymm13,ymm12
    2e1f  vandnps ymm2,ymm14,ymm13
    2e24  vaddps ymm1,ymm1,ymm2
    2e28  vdivps ymm4,ymm4,ymm1
    2e2c  vmovups [r8],ymm4
    2e31  vdivps ymm5,ymm5,ymm1
    2e35  vmovups [r8+20h],ymm5
    2e3b  vdivps ymm6,ymm6,ymm1
    2e3f  vmovups [r8+40h],ymm6
    2e45  vdivps ymm7,ymm7,ymm1
    2e49  vmovups [r8+60h],ymm7
    2e4f  vzeroupper
    2e52  pop rbp
    2e53  pop rbx
    2e54  ret
    2e55  add [rax],al
    2e57  mov al,42h
    2e59  add [rax],al
    2e5b  mov al,42h
    2e5d  add [rax],al
    2e5f  mov al,42h
    2e61  add [rax],al
    2e63  mov al,42h
    2e65  add [rax],al
    2e67  mov al,42h
    2e69  add [rax],al
    2e6b  mov al,42h
    2e6d  add [rax],al
    2e6f  mov al,42h
    2e71  add [rax],al
    2e73  mov al,42h
    2e75  cmp ebp,[rdx-55C4C048h]
    2e7b  mov eax,0B8AA3B3Fh
    2e80  (bad)
    2e82  stosb
    2e83  mov eax,0B8AA3B3Fh
    2e88  (bad)
    2e8a  stosb
    2e8b  mov eax,0B8AA3B3Fh
    2e90  (bad)
    2e92  stosb
    2e93  mov eax,4000003Fh
    2e98  add [r8],al
    2e9b  add [r8],al
    2e9f  add [r8],al
    2ea3  add [r8],al
    2ea7  add [r8],al
    2eab  add [r8],al
    2eaf  add [r8],al
    2eb3  add [r10+31h],sil
    2eb8  mov edi,0BF317200h
    2ebd  add [rdx+31h],dh
    2ec0  mov edi,0BF317200h
    2ec5  add [rdx+31h],dh
    2ec8  mov edi,0BF317200h
    2ecd  add [rdx+31h],dh
    2ed0  mov edi,0BF317200h
    2ed5  (bad)
    2edb  mov edi,0BFBE8EB5h
    2ee0  mov ch,8Eh
    2ee2  mov esi,0BE8EB5BFh
    2ee7  mov edi,0BFBE8EB5h
    2eec  mov ch,8Eh
    2eee  mov esi,0BE8EB5BFh
    2ef3  mov edi,0AE0000B5h
    2ef8  ret 0
    2efb  scasb
    2efc  ret 0
    2eff  scasb
    2f00  ret 0
    2f03  scasb
    2f04  ret 0
    2f07  scasb
    2f08  ret 0
    2f0b  scasb
    2f0c  ret 0
    2f0f  scasb
    2f10  ret 0
    2f13  scasb
    2f14  ret 6967h
    2f17  push rax
    2f18  cmp [rdi+69h],esp
    2f1b  push rax
    2f1c  cmp [rdi+69h],esp
    2f1f  push rax
    2f20  cmp [rdi+69h],esp
    2f23  push rax
    2f24  cmp [rdi+69h],esp
    2f27  push rax
    2f28  cmp [rdi+69h],esp
    2f2b  push rax
    2f2c  cmp [rdi+69h],esp
    2f2f  push rax
    2f30  cmp [rdi+69h],esp
    2f33  push rax
    2f34  cmp esi,ecx
    2f36  mov r15b,3Ah
    2f39  (bad)
    2f3b  mov bh,3Ah
    2f3d  (bad)
    2f3f  mov bh,3Ah
    2f41  (bad)
    2f43  mov bh,3Ah
    2f45  (bad)
    2f47  mov bh,3Ah
    2f49  (bad)
    2f4b  mov bh,3Ah
    2f4d  (bad)
    2f4f  mov bh,3Ah
    2f51  (bad)
    2f53  mov bh,3Ah
    2f55  or [rcx-76F7C3F8h],cl
    2f5b  or [rax+rcx],bh
    2f5e  mov [rax],ecx
    2f60  cmp al,8
    2f62  mov [rax],ecx
    2f64  cmp al,8
    2f66  mov [rax],ecx
    2f68  cmp al,8
    2f6a  mov [rax],ecx
    2f6c  cmp al,8
    2f6e  mov [rax],ecx
    2f70  cmp al,8
    2f72  mov [rax],ecx
    2f74  cmp al,0C1h
    2f76  test eax,0A9C13D2Ah
    2f7b  sub bh,[rel 3D2AD942h]
    2f81  shr dword [rcx-563EC2D6h],2Ah
    2f88  cmp eax,3D2AA9C1h
    2f8d  shr dword [rcx-563EC2D6h],2Ah
    2f94  cmp eax,3E2AAAAAh
    2f99  stosb
    2f9a  stosb
    2f9b  sub bh,[rsi]
    2f9d  stosb
    2f9e  stosb
    2f9f  sub bh,[rsi]
    2fa1  stosb
    2fa2  stosb
    2fa3  sub bh,[rsi]
    2fa5  stosb
    2fa6  stosb
    2fa7  sub bh,[rsi]
    2fa9  stosb
    2faa  stosb
    2fab  sub bh,[rsi]
    2fad  stosb
    2fae  stosb
    2faf  sub bh,[rsi]
    2fb1  stosb
    2fb2  stosb
    2fb3  sub bh,[rsi]
    2fb5  add [rax],al
    2fb7  add [rdi],bh
    2fb9  add [rax],al
    2fbb  add [rdi],bh
    2fbd  add [rax],al
    2fbf  add [rdi],bh
    2fc1  add [rax],al
    2fc3  add [rdi],bh
    2fc5  add [rax],al
    2fc7  add [rdi],bh
    2fc9  add [rax],al
    2fcb  add [rdi],bh
    2fcd  add [rax],al
    2fcf  add [rdi],bh
    2fd1  add [rax],al
    2fd3  add [rdi],bh
    2fd5  add [rax],al
    2fd7  cmp byte [rdi],0
    2fda  add [rax-7FFFFFC1h],al
    2fe0  (bad)
    2fe2  add [rax-7FFFFFC1h],al
    2fe8  (bad)
    2fea  add [rax-7FFFFFC1h],al
    2ff0  (bad)
    2ff2  add [rax-7FFFFFC1h],al
    2ff8  (bad)
    2ffa  add [rax-7FFFFFC1h],al
    3000  (bad)
    3002  add [rax-7FFFFFC1h],al
    3008  (bad)
    300a  add [rax-7FFFFFC1h],al
    3010  (bad)
    3012  add [rax-7FFFFFC1h],al
    3018  inc dword [rax]
    301a  add [rax-7FFFFF01h],al
    3020  inc dword [rax]
    3022  add [rax-7FFFFF01h],al
    3028  inc dword [rax]
    302a  add [rax-7FFFFF01h],al
    3030  inc dword [rax]
    3032  add [rax+0FFh],al
    3038  add [rcx],al
    303a  add [rax],al
    303c  add [rdx],al
    303e  add [rax],al
    3040  add [rbx],al
    3042  add [rax],al
    3044  add [rax+rax],al
    3047  add [rax],al
    3049  add eax,6000000h
    304e  add [rax],al
    3050  add [rdi],al
    3052  add [rax],al
    3054  add [rax],cl
    3056  add [rax],al
    3058  add [rcx],cl
    305a  add [rax],al
    305c  add [rdx],cl
    305e  add [rax],al
    3060  add [rbx],cl
    3062  add [rax],al
    3064  add [rax+rax],cl
    3067  add [rax],al
    3069  or eax,0E000000h
    306e  add [rax],al
    3070  add [rdi],cl
    3072  add [rax],al
    3074  (bad)

map_n32_1e3898d682e799f0:
    3080  lea rax,[rel 3351h]
    3087  vbroadcastss ymm13,[rax]
    308c  vbroadcastss ymm12,[rax+20h]
    3092  vbroadcastss ymm11,[rax+40h]
    3098  vbroadcastss ymm10,[rax+60h]
    309e  vbroadcastss ymm9,[rax+80h]
    30a7  vbroadcastss ymm8,[rax+0A0h]
    30b0  vbroadcastss ymm7,[rax+0C0h]
    30b9  vbroadcastss ymm15,[rax+0E0h]
    30c2  vbroadcastss ymm6,[rax+100h]
    30cb  vbroadcastss ymm5,[rax+120h]
    30d4  vbroadcastss ymm14,[rax+140h]
    30dd  test rcx,rcx
    30e0  je near 000000000000334Dh
    30e6  vmovups ymm0,[rsi]
    30ea  vminps ymm0,ymm0,ymm5
    30ee  vsubps ymm1,ymm13,ymm0
    30f2  vminps ymm2,ymm1,[rax+160h]
    30fa  vmovups ymm3,ymm14
    30ff  vfmadd231ps ymm3,ymm2,ymm6
    3104  vsubps ymm4,ymm3,ymm14
    3109  vfmadd231ps ymm2,ymm4,[rax+180h]
    3112  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    311b  vmovups ymm4,ymm11
    3120  vfmadd231ps ymm4,ymm12,ymm2
    3125  vfmadd213ps ymm4,ymm2,ymm10
    312a  vfmadd213ps ymm4,ymm2,ymm9
    312f  vfmadd213ps ymm4,ymm2,ymm8
    3134  vfmadd213ps ymm4,ymm2,ymm7
    3139  vfmadd213ps ymm4,ymm2,ymm15
    313e  vfmadd213ps ymm4,ymm2,ymm15
    3143  vpslld ymm2,ymm3,17h
    3148  vpaddd ymm2,ymm2,ymm4
    314c  vcmpnltps ymm3,ymm1,[rax+1C0h]
    3155  vpand ymm3,ymm3,ymm2
    3159  vaddps ymm1,ymm15,ymm3
    315d  vdivps ymm1,ymm15,ymm1
    3161  vmulps ymm0,ymm0,ymm1
    3165  vmovups ymm1,[rdx]
    3169  vaddps ymm1,ymm1,ymm15
    316e  vmulps ymm0,ymm0,ymm1
    3172  vmovups [rdi],ymm0
    3176  vmovups ymm0,[rsi+20h]
    317b  vminps ymm0,ymm0,ymm5
    317f  vsubps ymm1,ymm13,ymm0
    3183  vminps ymm2,ymm1,[rax+160h]
    318b  vmovups ymm3,ymm14
    3190  vfmadd231ps ymm3,ymm2,ymm6
    3195  vsubps ymm4,ymm3,ymm14
    319a  vfmadd231ps ymm2,ymm4,[rax+180h]
    31a3  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    31ac  vmovups ymm4,ymm11
    31b1  vfmadd231ps ymm4,ymm12,ymm2
    31b6  vfmadd213ps ymm4,ymm2,ymm10
    31bb  vfmadd213ps ymm4,ymm2,ymm9
    31c0  vfmadd213ps ymm4,ymm2,ymm8
    31c5  vfmadd213ps ymm4,ymm2,ymm7
    31ca  vfmadd213ps ymm4,ymm2,ymm15
    31cf  vfmadd213ps ymm4,ymm2,ymm15
    31d4  vpslld ymm2,ymm3,17h
    31d9  vpaddd ymm2,ymm2,ymm4
    31dd  vcmpnltps ymm3,ymm1,[rax+1C0h]
    31e6  vpand ymm3,ymm3,ymm2
    31ea  vaddps ymm1,ymm15,ymm3
    31ee  vdivps ymm1,ymm15,ymm1
    31f2  vmulps ymm0,ymm0,ymm1
    31f6  vmovups ymm1,[rdx+20h]
    31fb  vaddps ymm1,ymm1,ymm15
    3200  vmulps ymm0,ymm0,ymm1
    3204  vmovups [rdi+20h],ymm0
    3209  vmovups ymm0,[rsi+40h]
    320e  vminps ymm0,ymm0,ymm5
    3212  vsubps ymm1,ymm13,ymm0
    3216  vminps ymm2,ymm1,[rax+160h]
    321e  vmovups ymm3,ymm14
    3223  vfmadd231ps ymm3,ymm2,ymm6
    3228  vsubps ymm4,ymm3,ymm14
    322d  vfmadd231ps ymm2,ymm4,[rax+180h]
    3236  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    323f  vmovups ymm4,ymm11
    3244  vfmadd231ps ymm4,ymm12,ymm2
    3249  vfmadd213ps ymm4,ymm2,ymm10
    324e  vfmadd213ps ymm4,ymm2,ymm9
    3253  vfmadd213ps ymm4,ymm2,ymm8
    3258  vfmadd213ps ymm4,ymm2,ymm7
    325d  vfmadd213ps ymm4,ymm2,ymm15
    3262  vfmadd213ps ymm4,ymm2,ymm15
    3267  vpslld ymm2,ymm3,17h
    326c  vpaddd ymm2,ymm2,ymm4
    3270  vcmpnltps ymm3,ymm1,[rax+1C0h]
    3279  vpand ymm3,ymm3,ymm2
    327d  vaddps ymm1,ymm15,ymm3
    3281  vdivps ymm1,ymm15,ymm1
    3285  vmulps ymm0,ymm0,ymm1
    3289  vmovups ymm1,[rdx+40h]
    328e  vaddps ymm1,ymm1,ymm15
    3293  vmulps ymm0,ymm0,ymm1
    3297  vmovups [rdi+40h],ymm0
    329c  vmovups ymm0,[rsi+60h]
    32a1  vminps ymm0,ymm0,ymm5
    32a5  vsubps ymm1,ymm13,ymm0
    32a9  vminps ymm2,ymm1,[rax+160h]
    32b1  vmovups ymm3,ymm14
    32b6  vfmadd231ps ymm3,ymm2,ymm6
    32bb  vsubps ymm4,ymm3,ymm14
    32c0  vfmadd231ps ymm2,ymm4,[rax+180h]
    32c9  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    32d2  vmovups ymm4,ymm11
    32d7  vfmadd231ps ymm4,ymm12,ymm2
    32dc  vfmadd213ps ymm4,ymm2,ymm10
    32e1  vfmadd213ps ymm4,ymm2,ymm9
    32e6  vfmadd213ps ymm4,ymm2,ymm8
    32eb  vfmadd213ps ymm4,ymm2,ymm7
    32f0  vfmadd213ps ymm4,ymm2,ymm15
    32f5  vfmadd213ps ymm4,ymm2,ymm15
    32fa  vpslld ymm2,ymm3,17h
    32ff  vpaddd ymm2,ymm2,ymm4
    3303  vcmpnltps ymm3,ymm1,[rax+1C0h]
    330c  vpand ymm3,ymm3,ymm2
    3310  vaddps ymm1,ymm15,ymm3
    3314  vdivps ymm1,ymm15,ymm1
    3318  vmulps ymm0,ymm0,ymm1
    331c  vmovups ymm1,[rdx+60h]
    3321  vaddps ymm1,ymm1,ymm15
    3326  vmulps ymm0,ymm0,ymm1
    332a  vmovups [rdi+60h],ymm0
    332f  add rdi,100h
    3336  add rsi,100h
    333d  add rdx,100h
    3344  dec rcx
    3347  jne near 00000000000030E6h
    334d  vzeroupper
    3350  ret
    3351  add [rax],al
    3353  add [rax],al
    3355  add [rax],al
    3357  add [rax],al
    3359  add [rax],al
    335b  add [rax],al
    335d  add [rax],al
    335f  add [rax],al
    3361  add [rax],al
    3363  add [rax],al
    3365  add [rax],al
    3367  add [rax],al
    3369  add [rax],al
    336b  add [rax],al
    336d  add [rax],al
    336f  add [rax],al
    3371  imul edx,[eax+39h],39506967h
    3379  imul edx,[eax+39h],39506967h
    3381  imul edx,[eax+39h],39506967h
    3389  imul edx,[eax+39h],39506967h
    3391  (bad)
    3393  mov bh,3Ah
    3395  (bad)
    3397  mov bh,3Ah
    3399  (bad)
    339b  mov bh,3Ah
    339d  (bad)
    339f  mov bh,3Ah
    33a1  (bad)
    33a3  mov bh,3Ah
    33a5  (bad)
    33a7  mov bh,3Ah
    33a9  (bad)
    33ab  mov bh,3Ah
    33ad  (bad)
    33af  mov bh,3Ah
    33b1  or [rcx-76F7C3F8h],cl
    33b7  or [rax+rcx],bh
    33ba  mov [rax],ecx
    33bc  cmp al,8
    33be  mov [rax],ecx
    33c0  cmp al,8
    33c2  mov [rax],ecx
    33c4  cmp al,8
    33c6  mov [rax],ecx
    33c8  cmp al,8
    33ca  mov [rax],ecx
    33cc  cmp al,8
    33ce  mov [rax],ecx
    33d0  cmp al,0C1h
    33d2  test eax,0A9C13D2Ah
    33d7  sub bh,[rel 3D2ADD9Eh]
    33dd  shr dword [rcx-563EC2D6h],2Ah
    33e4  cmp eax,3D2AA9C1h
    33e9  shr dword [rcx-563EC2D6h],2Ah
    33f0  cmp eax,3E2AAAAAh
    33f5  stosb
    33f6  stosb
    33f7  sub bh,[rsi]
    33f9  stosb
    33fa  stosb
    33fb  sub bh,[rsi]
    33fd  stosb
    33fe  stosb
    33ff  sub bh,[rsi]
    3401  stosb
    3402  stosb
    3403  sub bh,[rsi]
    3405  stosb
    3406  stosb
    3407  sub bh,[rsi]
    3409  stosb
    340a  stosb
    340b  sub bh,[rsi]
    340d  stosb
    340e  stosb
    340f  sub bh,[rsi]
    3411  add [rax],al
    3413  add [rdi],bh
    3415  add [rax],al
    3417  add [rdi],bh
    3419  add [rax],al
    341b  add [rdi],bh
    341d  add [rax],al
    341f  add [rdi],bh
    3421  add [rax],al
    3423  add [rdi],bh
    3425  add [rax],al
    3427  add [rdi],bh
    3429  add [rax],al
    342b  add [rdi],bh
    342d  add [rax],al
    342f  add [rdi],bh
    3431  add [rax],al
    3433  cmp byte [rdi],0
    3436  add [rax-7FFFFFC1h],al
    343c  (bad)
    343e  add [rax-7FFFFFC1h],al
    3444  (bad)
    3446  add [rax-7FFFFFC1h],al
    344c  (bad)
    344e  add [rax-4755C4C1h],al
    3454  (bad)
    3456  stosb
    3457  mov eax,0B8AA3B3Fh
    345c  (bad)
    345e  stosb
    345f  mov eax,0B8AA3B3Fh
    3464  (bad)
    3466  stosb
    3467  mov eax,0B8AA3B3Fh
    346c  (bad)
    346e  stosb
    346f  mov eax,0E000003Fh
    3474  add [rax],al
    3477  loopne 00000000000034B9h
    3479  add [rax],al
    347b  loopne 00000000000034BDh
    347d  add [rax],al
    347f  loopne 00000000000034C1h
    3481  add [rax],al
    3483  loopne 00000000000034C5h
    3485  add [rax],al
    3487  loopne 00000000000034C9h
    3489  add [rax],al
    348b  loopne 00000000000034CDh
    348d  add [rax],al
    348f  loopne 00000000000034D1h
    3491  add [rax],al
    3493  add [r8],al
    3497  add [r8],al
    349b  add [r8],al
    349f  add [r8],al
    34a3  add [r8],al
    34a7  add [r8],al
    34ab  add [r8],al
    34af  add [r8],al
    34b3  mov al,42h
    34b5  add [rax],al
    34b7  mov al,42h
    34b9  add [rax],al
    34bb  mov al,42h
    34bd  add [rax],al
    34bf  mov al,42h
    34c1  add [rax],al
    34c3  mov al,42h
    34c5  add [rax],al
    34c7  mov al,42h
    34c9  add [rax],al
    34cb  mov al,42h
    34cd  add [rax],al
    34cf  mov al,42h
    34d1  add [rdx+31h],dh
    34d4  mov edi,0BF317200h
    34d9  add [rdx+31h],dh
    34dc  mov edi,0BF317200h
    34e1  add [rdx+31h],dh
    34e4  mov edi,0BF317200h
    34e9  add [rdx+31h],dh
    34ec  mov edi,0BF317200h
    34f1  (bad)
    34f7  mov edi,0BFBE8EB5h
    34fc  mov ch,8Eh
    34fe  mov esi,0BE8EB5BFh
    3503  mov edi,0BFBE8EB5h
    3508  mov ch,8Eh
    350a  mov esi,0BE8EB5BFh
    350f  mov edi,0AE0000B5h
    3514  ret 0
    3517  scasb
    3518  ret 0
    351b  scasb
    351c  ret 0
    351f  scasb
    3520  ret 0
    3523  scasb
    3524  ret 0
    3527  scasb
    3528  ret 0
    352b  scasb
    352c  ret 0
    352f  scasb
    3530  (bad)

quantize_q8:
    3540  lea rax,[rel 36A9h]
    3547  vpxor ymm15,ymm15,ymm15
    354c  vpbroadcastd ymm14,[rax+4]
    3552  vpbroadcastd ymm13,[rax]
    3557  vpbroadcastd ymm12,[rax+8]
    355d  vpbroadcastd ymm11,[rax+0Ch]
    3563  vpbroadcastd ymm10,[rax+10h]
    3569  vmovdqu ymm9,[rax+14h]
    356e  test r8,r8
    3571  je near 00000000000036A5h
    3577  vmovups ymm0,[rdi]
    357b  vpand ymm4,ymm0,ymm13
    3580  vmovups ymm1,[rdi+20h]
    3585  vpand ymm5,ymm1,ymm13
    358a  vpmaxsd ymm4,ymm4,ymm5
    358f  vmovups ymm2,[rdi+40h]
    3594  vpand ymm5,ymm2,ymm13
    3599  vpmaxsd ymm4,ymm4,ymm5
    359e  vmovups ymm3,[rdi+60h]
    35a3  vpand ymm5,ymm3,ymm13
    35a8  vpmaxsd ymm4,ymm4,ymm5
    35ad  vextracti128 xmm5,ymm4,1
    35b3  vpmaxsd xmm4,xmm4,xmm5
    35b8  vpshufd xmm5,xmm4,4Eh
    35bd  vpmaxsd xmm4,xmm4,xmm5
    35c2  vpshufd xmm5,xmm4,0B1h
    35c7  vpmaxsd xmm4,xmm4,xmm5
    35cc  vdivss xmm5,xmm4,xmm14
    35d1  vmovss [rdx],xmm5
    35d5  vcmpneqps xmm5,xmm4,xmm15
    35db  vdivps xmm4,xmm14,xmm4
    35df  vandps xmm4,xmm4,xmm5
    35e3  vbroadcastss ymm4,xmm4
    35e8  vmulps ymm0,ymm0,ymm4
    35ec  vaddps ymm0,ymm0,ymm12
    35f1  vpsubd ymm0,ymm0,ymm12
    35f6  vpmaxsd ymm0,ymm0,ymm11
    35fb  vpminsd ymm0,ymm0,ymm10
    3600  vmulps ymm1,ymm1,ymm4
    3604  vaddps ymm1,ymm1,ymm12
    3609  vpsubd ymm1,ymm1,ymm12
    360e  vpmaxsd ymm1,ymm1,ymm11
    3613  vpminsd ymm1,ymm1,ymm10
    3618  vmulps ymm2,ymm2,ymm4
    361c  vaddps ymm2,ymm2,ymm12
    3621  vpsubd ymm2,ymm2,ymm12
    3626  vpmaxsd ymm2,ymm2,ymm11
    362b  vpminsd ymm2,ymm2,ymm10
    3630  vmulps ymm3,ymm3,ymm4
    3634  vaddps ymm3,ymm3,ymm12
    3639  vpsubd ymm3,ymm3,ymm12
    363e  vpmaxsd ymm3,ymm3,ymm11
    3643  vpminsd ymm3,ymm3,ymm10
    3648  vpaddd ymm4,ymm0,ymm1
    364c  vpaddd ymm5,ymm2,ymm3
    3650  vpaddd ymm4,ymm4,ymm5
    3654  vpackssdw ymm0,ymm0,ymm1
    3658  vpackssdw ymm2,ymm2,ymm3
    365c  vpacksswb ymm0,ymm0,ymm2
    3660  vpermd ymm0,ymm9,ymm0
    3665  vmovdqu [rsi],ymm0
    3669  vextracti128 xmm5,ymm4,1
    366f  vpaddd xmm4,xmm4,xmm5
    3673  vpshufd xmm5,xmm4,4Eh
    3678  vpaddd xmm4,xmm4,xmm5
    367c  vpshufd xmm5,xmm4,0B1h
    3681  vpaddd xmm4,xmm4,xmm5
    3685  vmovd [rcx],xmm4
    3689  add rdi,80h
    3690  add rsi,20h
    3694  add rdx,4
    3698  add rcx,4
    369c  dec r8
    369f  jne near 0000000000003577h
    36a5  vzeroupper
    36a8  ret
    36a9  (bad)
    36ab  (bad)
    36ad  add [rax],al
    36af  inc byte [rdx]
    36b2  add [rax+4Bh],al
    36b5  cmp bh,0FFh
    36b8  (bad)
    36ba  add [rax],al
    36bc  add [rax],al
    36be  add [rax],al
    36c0  add [rax+rax],al
    36c3  add [rax],al
    36c5  add [rax],eax
    36c7  add [rax],al
    36c9  add eax,2000000h
    36ce  add [rax],al
    36d0  add [rsi],al
    36d2  add [rax],al
    36d4  add [rbx],al
    36d6  add [rax],al
    36d8  add [rdi],al
    36da  add [rax],al
    36dc  (bad)

dot_adjacent_mxfp4_q8_k64_t1_pairs:
    3700  push rcx
    3701  push rdx
    3702  mov rax,rsi
    3705  mov r9,[rax]
    3708  lea r10,[rel 41B1h]
    370f  vpbroadcastd ymm0,[r10]
    3714  vbroadcasti128 ymm1,[r10+14h]
    371a  sub rsp,160h
    3721  vpbroadcastd ymm8,[r10+8]
    3727  vmovdqu [rsp+120h],ymm8
    3730  vpbroadcastd ymm8,[r10+0Ch]
    3736  vmovdqu [rsp+140h],ymm8
    373f  vpxor ymm9,ymm9,ymm9
    3744  vmovups [rsp],ymm9
    3749  vmovups [rsp+20h],ymm9
    374f  vmovups [rsp+40h],ymm9
    3755  vmovups [rsp+60h],ymm9
    375b  vmovups [rsp+80h],ymm9
    3764  vmovups [rsp+0A0h],ymm9
    376d  vmovups [rsp+0C0h],ymm9
    3776  vmovups [rsp+0E0h],ymm9
    377f  lea rsi,[rdi+40h]
    3783  xor r8,r8
    3786  lea rdx,[rsi+200h]
    378d  lea rcx,[rdi+900h]
    3794  cmp r8,0
    3798  jne short 00000000000037A1h
    379a  lea rdx,[rsi+900h]
    37a1  test r8,0Ch
    37a8  jne short 00000000000037C6h
    37aa  prefetcht1 [rcx]
    37ad  prefetcht1 [rcx+240h]
    37b4  prefetcht1 [rcx+480h]
    37bb  prefetcht1 [rcx+6C0h]
    37c2  add rcx,40h
    37c6  vpbroadcastd ymm3,[r10+10h]
    37cc  vpbroadcastd ymm2,[r9+r8+48h]
    37d3  vpmulld ymm2,ymm2,ymm3
    37d8  vmovdqu [rsp+100h],ymm2
    37e1  vpbroadcastd ymm6,[r9+r8*8]
    37e7  vpbroadcastd ymm7,[r9+r8*8+4]
    37ee  prefetcht1 [rdx]
    37f1  vmovdqu ymm2,[rsi]
    37f5  vmovdqu ymm4,[rsi+20h]
    37fa  vpsrlw ymm3,ymm2,4
    37ff  vpsrlw ymm5,ymm4,4
    3804  vpand ymm2,ymm2,ymm0
    3808  vpand ymm4,ymm4,ymm0
    380c  vpand ymm3,ymm3,ymm0
    3810  vpand ymm5,ymm5,ymm0
    3814  vpshufb ymm2,ymm1,ymm2
    3819  vpshufb ymm4,ymm1,ymm4
    381e  vpshufb ymm3,ymm1,ymm3
    3823  vpshufb ymm5,ymm1,ymm5
    3828  vpmaddubsw ymm12,ymm2,ymm6
    382d  vpmaddubsw ymm13,ymm4,ymm6
    3832  vpmaddubsw ymm3,ymm3,ymm7
    3837  vpmaddubsw ymm5,ymm5,ymm7
    383c  vpaddw ymm12,ymm12,ymm3
    3840  vpaddw ymm13,ymm13,ymm5
    3844  prefetcht1 [rdx+240h]
    384b  vmovdqu ymm2,[rsi+240h]
    3853  vmovdqu ymm4,[rsi+260h]
    385b  vpsrlw ymm3,ymm2,4
    3860  vpsrlw ymm5,ymm4,4
    3865  vpand ymm2,ymm2,ymm0
    3869  vpand ymm4,ymm4,ymm0
    386d  vpand ymm3,ymm3,ymm0
    3871  vpand ymm5,ymm5,ymm0
    3875  vpshufb ymm2,ymm1,ymm2
    387a  vpshufb ymm4,ymm1,ymm4
    387f  vpshufb ymm3,ymm1,ymm3
    3884  vpshufb ymm5,ymm1,ymm5
    3889  vpmaddubsw ymm14,ymm2,ymm6
    388e  vpmaddubsw ymm15,ymm4,ymm6
    3893  vpmaddubsw ymm3,ymm3,ymm7
    3898  vpmaddubsw ymm5,ymm5,ymm7
    389d  vpaddw ymm14,ymm14,ymm3
    38a1  vpaddw ymm15,ymm15,ymm5
    38a5  vpbroadcastd ymm6,[r9+r8*8+8]
    38ac  vpbroadcastd ymm7,[r9+r8*8+0Ch]
    38b3  prefetcht1 [rdx+480h]
    38ba  vmovdqu ymm2,[rsi+40h]
    38bf  vmovdqu ymm4,[rsi+60h]
    38c4  vpsrlw ymm3,ymm2,4
    38c9  vpsrlw ymm5,ymm4,4
    38ce  vpand ymm2,ymm2,ymm0
    38d2  vpand ymm4,ymm4,ymm0
    38d6  vpand ymm3,ymm3,ymm0
    38da  vpand ymm5,ymm5,ymm0
    38de  vpshufb ymm2,ymm1,ymm2
    38e3  vpshufb ymm4,ymm1,ymm4
    38e8  vpshufb ymm3,ymm1,ymm3
    38ed  vpshufb ymm5,ymm1,ymm5
    38f2  vpmaddubsw ymm2,ymm2,ymm6
    38f7  vpmaddubsw ymm4,ymm4,ymm6
    38fc  vpmaddubsw ymm3,ymm3,ymm7
    3901  vpmaddubsw ymm5,ymm5,ymm7
    3906  vpaddw ymm12,ymm12,ymm2
    390a  vpaddw ymm13,ymm13,ymm4
    390e  vpaddw ymm12,ymm12,ymm3
    3912  vpaddw ymm13,ymm13,ymm5
    3916  vpmaddwd ymm8,ymm12,[rsp+120h]
    391f  vpmaddwd ymm9,ymm13,[rsp+120h]
    3928  vpaddd ymm8,ymm8,[rsp+100h]
    3931  vpaddd ymm9,ymm9,[rsp+100h]
    393a  prefetcht1 [rdx+6C0h]
    3941  vmovdqu ymm2,[rsi+280h]
    3949  vmovdqu ymm4,[rsi+2A0h]
    3951  vpsrlw ymm3,ymm2,4
    3956  vpsrlw ymm5,ymm4,4
    395b  vpand ymm2,ymm2,ymm0
    395f  vpand ymm4,ymm4,ymm0
    3963  vpand ymm3,ymm3,ymm0
    3967  vpand ymm5,ymm5,ymm0
    396b  vpshufb ymm2,ymm1,ymm2
    3970  vpshufb ymm4,ymm1,ymm4
    3975  vpshufb ymm3,ymm1,ymm3
    397a  vpshufb ymm5,ymm1,ymm5
    397f  vpmaddubsw ymm2,ymm2,ymm6
    3984  vpmaddubsw ymm4,ymm4,ymm6
    3989  vpmaddubsw ymm3,ymm3,ymm7
    398e  vpmaddubsw ymm5,ymm5,ymm7
    3993  vpaddw ymm14,ymm14,ymm2
    3997  vpaddw ymm15,ymm15,ymm4
    399b  vpaddw ymm14,ymm14,ymm3
    399f  vpaddw ymm15,ymm15,ymm5
    39a3  vpmaddwd ymm10,ymm14,[rsp+120h]
    39ac  vpmaddwd ymm11,ymm15,[rsp+120h]
    39b5  vpaddd ymm10,ymm10,[rsp+100h]
    39be  vpaddd ymm11,ymm11,[rsp+100h]
    39c7  vpbroadcastd ymm6,[r9+r8*8+10h]
    39ce  vpbroadcastd ymm7,[r9+r8*8+14h]
    39d5  prefetcht1 [rdx+40h]
    39d9  vmovdqu ymm2,[rsi+80h]
    39e1  vmovdqu ymm4,[rsi+0A0h]
    39e9  vpsrlw ymm3,ymm2,4
    39ee  vpsrlw ymm5,ymm4,4
    39f3  vpand ymm2,ymm2,ymm0
    39f7  vpand ymm4,ymm4,ymm0
    39fb  vpand ymm3,ymm3,ymm0
    39ff  vpand ymm5,ymm5,ymm0
    3a03  vpshufb ymm2,ymm1,ymm2
    3a08  vpshufb ymm4,ymm1,ymm4
    3a0d  vpshufb ymm3,ymm1,ymm3
    3a12  vpshufb ymm5,ymm1,ymm5
    3a17  vpmaddubsw ymm12,ymm2,ymm6
    3a1c  vpmaddubsw ymm13,ymm4,ymm6
    3a21  vpmaddubsw ymm3,ymm3,ymm7
    3a26  vpmaddubsw ymm5,ymm5,ymm7
    3a2b  vpaddw ymm12,ymm12,ymm3
    3a2f  vpaddw ymm13,ymm13,ymm5
    3a33  prefetcht1 [rdx+280h]
    3a3a  vmovdqu ymm2,[rsi+2C0h]
    3a42  vmovdqu ymm4,[rsi+2E0h]
    3a4a  vpsrlw ymm3,ymm2,4
    3a4f  vpsrlw ymm5,ymm4,4
    3a54  vpand ymm2,ymm2,ymm0
    3a58  vpand ymm4,ymm4,ymm0
    3a5c  vpand ymm3,ymm3,ymm0
    3a60  vpand ymm5,ymm5,ymm0
    3a64  vpshufb ymm2,ymm1,ymm2
    3a69  vpshufb ymm4,ymm1,ymm4
    3a6e  vpshufb ymm3,ymm1,ymm3
    3a73  vpshufb ymm5,ymm1,ymm5
    3a78  vpmaddubsw ymm14,ymm2,ymm6
    3a7d  vpmaddubsw ymm15,ymm4,ymm6
    3a82  vpmaddubsw ymm3,ymm3,ymm7
    3a87  vpmaddubsw ymm5,ymm5,ymm7
    3a8c  vpaddw ymm14,ymm14,ymm3
    3a90  vpaddw ymm15,ymm15,ymm5
    3a94  vpbroadcastd ymm6,[r9+r8*8+18h]
    3a9b  vpbroadcastd ymm7,[r9+r8*8+1Ch]
    3aa2  prefetcht1 [rdx+4C0h]
    3aa9  vmovdqu ymm2,[rsi+0C0h]
    3ab1  vmovdqu ymm4,[rsi+0E0h]
    3ab9  vpsrlw ymm3,ymm2,4
    3abe  vpsrlw ymm5,ymm4,4
    3ac3  vpand ymm2,ymm2,ymm0
    3ac7  vpand ymm4,ymm4,ymm0
    3acb  vpand ymm3,ymm3,ymm0
    3acf  vpand ymm5,ymm5,ymm0
    3ad3  vpshufb ymm2,ymm1,ymm2
    3ad8  vpshufb ymm4,ymm1,ymm4
    3add  vpshufb ymm3,ymm1,ymm3
    3ae2  vpshufb ymm5,ymm1,ymm5
    3ae7  vpmaddubsw ymm2,ymm2,ymm6
    3aec  vpmaddubsw ymm4,ymm4,ymm6
    3af1  vpmaddubsw ymm3,ymm3,ymm7
    3af6  vpmaddubsw ymm5,ymm5,ymm7
    3afb  vpaddw ymm12,ymm12,ymm2
    3aff  vpaddw ymm13,ymm13,ymm4
    3b03  vpaddw ymm12,ymm12,ymm3
    3b07  vpaddw ymm13,ymm13,ymm5
    3b0b  vpmaddwd ymm12,ymm12,[rsp+120h]
    3b14  vpmaddwd ymm13,ymm13,[rsp+120h]
    3b1d  vpaddd ymm8,ymm8,ymm12
    3b22  vpaddd ymm9,ymm9,ymm13
    3b27  prefetcht1 [rdx+700h]
    3b2e  vmovdqu ymm2,[rsi+300h]
    3b36  vmovdqu ymm4,[rsi+320h]
    3b3e  vpsrlw ymm3,ymm2,4
    3b43  vpsrlw ymm5,ymm4,4
    3b48  vpand ymm2,ymm2,ymm0
    3b4c  vpand ymm4,ymm4,ymm0
    3b50  vpand ymm3,ymm3,ymm0
    3b54  vpand ymm5,ymm5,ymm0
    3b58  vpshufb ymm2,ymm1,ymm2
    3b5d  vpshufb ymm4,ymm1,ymm4
    3b62  vpshufb ymm3,ymm1,ymm3
    3b67  vpshufb ymm5,ymm1,ymm5
    3b6c  vpmaddubsw ymm2,ymm2,ymm6
    3b71  vpmaddubsw ymm4,ymm4,ymm6
    3b76  vpmaddubsw ymm3,ymm3,ymm7
    3b7b  vpmaddubsw ymm5,ymm5,ymm7
    3b80  vpaddw ymm14,ymm14,ymm2
    3b84  vpaddw ymm15,ymm15,ymm4
    3b88  vpaddw ymm14,ymm14,ymm3
    3b8c  vpaddw ymm15,ymm15,ymm5
    3b90  vpmaddwd ymm14,ymm14,[rsp+120h]
    3b99  vpmaddwd ymm15,ymm15,[rsp+120h]
    3ba2  vpaddd ymm10,ymm10,ymm14
    3ba7  vpaddd ymm11,ymm11,ymm15
    3bac  vbroadcastss ymm6,[r9+r8+40h]
    3bb3  vpmovzxbd ymm2,[rdi]
    3bb8  vpslld ymm2,ymm2,17h
    3bbd  vpaddd ymm2,ymm2,[rsp+140h]
    3bc6  vpaddd ymm8,ymm8,ymm2
    3bca  vsubps ymm8,ymm8,ymm2
    3bce  vfmadd213ps ymm8,ymm6,[rsp]
    3bd4  vmovups [rsp],ymm8
    3bd9  vpmovzxbd ymm2,[rdi+8]
    3bdf  vpslld ymm2,ymm2,17h
    3be4  vpaddd ymm2,ymm2,[rsp+140h]
    3bed  vpaddd ymm9,ymm9,ymm2
    3bf1  vsubps ymm9,ymm9,ymm2
    3bf5  vfmadd213ps ymm9,ymm6,[rsp+20h]
    3bfc  vmovups [rsp+20h],ymm9
    3c02  vpmovzxbd ymm2,[rdi+240h]
    3c0b  vpslld ymm2,ymm2,17h
    3c10  vpaddd ymm2,ymm2,[rsp+140h]
    3c19  vpaddd ymm10,ymm10,ymm2
    3c1d  vsubps ymm10,ymm10,ymm2
    3c21  vfmadd213ps ymm10,ymm6,[rsp+40h]
    3c28  vmovups [rsp+40h],ymm10
    3c2e  vpmovzxbd ymm2,[rdi+248h]
    3c37  vpslld ymm2,ymm2,17h
    3c3c  vpaddd ymm2,ymm2,[rsp+140h]
    3c45  vpaddd ymm11,ymm11,ymm2
    3c49  vsubps ymm11,ymm11,ymm2
    3c4d  vfmadd213ps ymm11,ymm6,[rsp+60h]
    3c54  vmovups [rsp+60h],ymm11
    3c5a  vpbroadcastd ymm6,[r9+r8*8]
    3c60  vpbroadcastd ymm7,[r9+r8*8+4]
    3c67  prefetcht1 [rdx+80h]
    3c6e  vmovdqu ymm2,[rsi+480h]
    3c76  vmovdqu ymm4,[rsi+4A0h]
    3c7e  vpsrlw ymm3,ymm2,4
    3c83  vpsrlw ymm5,ymm4,4
    3c88  vpand ymm2,ymm2,ymm0
    3c8c  vpand ymm4,ymm4,ymm0
    3c90  vpand ymm3,ymm3,ymm0
    3c94  vpand ymm5,ymm5,ymm0
    3c98  vpshufb ymm2,ymm1,ymm2
    3c9d  vpshufb ymm4,ymm1,ymm4
    3ca2  vpshufb ymm3,ymm1,ymm3
    3ca7  vpshufb ymm5,ymm1,ymm5
    3cac  vpmaddubsw ymm12,ymm2,ymm6
    3cb1  vpmaddubsw ymm13,ymm4,ymm6
    3cb6  vpmaddubsw ymm3,ymm3,ymm7
    3cbb  vpmaddubsw ymm5,ymm5,ymm7
    3cc0  vpaddw ymm12,ymm12,ymm3
    3cc4  vpaddw ymm13,ymm13,ymm5
    3cc8  prefetcht1 [rdx+2C0h]
    3ccf  vmovdqu ymm2,[rsi+6C0h]
    3cd7  vmovdqu ymm4,[rsi+6E0h]
    3cdf  vpsrlw ymm3,ymm2,4
    3ce4  vpsrlw ymm5,ymm4,4
    3ce9  vpand ymm2,ymm2,ymm0
    3ced  vpand ymm4,ymm4,ymm0
    3cf1  vpand ymm3,ymm3,ymm0
    3cf5  vpand ymm5,ymm5,ymm0
    3cf9  vpshufb ymm2,ymm1,ymm2
    3cfe  vpshufb ymm4,ymm1,ymm4
    3d03  vpshufb ymm3,ymm1,ymm3
    3d08  vpshufb ymm5,ymm1,ymm5
    3d0d  vpmaddubsw ymm14,ymm2,ymm6
    3d12  vpmaddubsw ymm15,ymm4,ymm6
    3d17  vpmaddubsw ymm3,ymm3,ymm7
    3d1c  vpmaddubsw ymm5,ymm5,ymm7
    3d21  vpaddw ymm14,ymm14,ymm3
    3d25  vpaddw ymm15,ymm15,ymm5
    3d29  vpbroadcastd ymm6,[r9+r8*8+8]
    3d30  vpbroadcastd ymm7,[r9+r8*8+0Ch]
    3d37  prefetcht1 [rdx+500h]
    3d3e  vmovdqu ymm2,[rsi+4C0h]
    3d46  vmovdqu ymm4,[rsi+4E0h]
    3d4e  vpsrlw ymm3,ymm2,4
    3d53  vpsrlw ymm5,ymm4,4
    3d58  vpand ymm2,ymm2,ymm0
    3d5c  vpand ymm4,ymm4,ymm0
    3d60  vpand ymm3,ymm3,ymm0
    3d64  vpand ymm5,ymm5,ymm0
    3d68  vpshufb ymm2,ymm1,ymm2
    3d6d  vpshufb ymm4,ymm1,ymm4
    3d72  vpshufb ymm3,ymm1,ymm3
    3d77  vpshufb ymm5,ymm1,ymm5
    3d7c  vpmaddubsw ymm2,ymm2,ymm6
    3d81  vpmaddubsw ymm4,ymm4,ymm6
    3d86  vpmaddubsw ymm3,ymm3,ymm7
    3d8b  vpmaddubsw ymm5,ymm5,ymm7
    3d90  vpaddw ymm12,ymm12,ymm2
    3d94  vpaddw ymm13,ymm13,ymm4
    3d98  vpaddw ymm12,ymm12,ymm3
    3d9c  vpaddw ymm13,ymm13,ymm5
    3da0  vpmaddwd ymm8,ymm12,[rsp+120h]
    3da9  vpmaddwd ymm9,ymm13,[rsp+120h]
    3db2  vpaddd ymm8,ymm8,[rsp+100h]
    3dbb  vpaddd ymm9,ymm9,[rsp+100h]
    3dc4  prefetcht1 [rdx+740h]
    3dcb  vmovdqu ymm2,[rsi+700h]
    3dd3  vmovdqu ymm4,[rsi+720h]
    3ddb  vpsrlw ymm3,ymm2,4
    3de0  vpsrlw ymm5,ymm4,4
    3de5  vpand ymm2,ymm2,ymm0
    3de9  vpand ymm4,ymm4,ymm0
    3ded  vpand ymm3,ymm3,ymm0
    3df1  vpand ymm5,ymm5,ymm0
    3df5  vpshufb ymm2,ymm1,ymm2
    3dfa  vpshufb ymm4,ymm1,ymm4
    3dff  vpshufb ymm3,ymm1,ymm3
    3e04  vpshufb ymm5,ymm1,ymm5
    3e09  vpmaddubsw ymm2,ymm2,ymm6
    3e0e  vpmaddubsw ymm4,ymm4,ymm6
    3e13  vpmaddubsw ymm3,ymm3,ymm7
    3e18  vpmaddubsw ymm5,ymm5,ymm7
    3e1d  vpaddw ymm14,ymm14,ymm2
    3e21  vpaddw ymm15,ymm15,ymm4
    3e25  vpaddw ymm14,ymm14,ymm3
    3e29  vpaddw ymm15,ymm15,ymm5
    3e2d  vpmaddwd ymm10,ymm14,[rsp+120h]
    3e36  vpmaddwd ymm11,ymm15,[rsp+120h]
    3e3f  vpaddd ymm10,ymm10,[rsp+100h]
    3e48  vpaddd ymm11,ymm11,[rsp+100h]
    3e51  vpbroadcastd ymm6,[r9+r8*8+10h]
    3e58  vpbroadcastd ymm7,[r9+r8*8+14h]
    3e5f  prefetcht1 [rdx+0C0h]
    3e66  vmovdqu ymm2,[rsi+500h]
    3e6e  vmovdqu ymm4,[rsi+520h]
    3e76  vpsrlw ymm3,ymm2,4
    3e7b  vpsrlw ymm5,ymm4,4
    3e80  vpand ymm2,ymm2,ymm0
    3e84  vpand ymm4,ymm4,ymm0
    3e88  vpand ymm3,ymm3,ymm0
    3e8c  vpand ymm5,ymm5,ymm0
    3e90  vpshufb ymm2,ymm1,ymm2
    3e95  vpshufb ymm4,ymm1,ymm4
    3e9a  vpshufb ymm3,ymm1,ymm3
    3e9f  vpshufb ymm5,ymm1,ymm5
    3ea4  vpmaddubsw ymm12,ymm2,ymm6
    3ea9  vpmaddubsw ymm13,ymm4,ymm6
    3eae  vpmaddubsw ymm3,ymm3,ymm7
    3eb3  vpmaddubsw ymm5,ymm5,ymm7
    3eb8  vpaddw ymm12,ymm12,ymm3
    3ebc  vpaddw ymm13,ymm13,ymm5
    3ec0  prefetcht1 [rdx+300h]
    3ec7  vmovdqu ymm2,[rsi+740h]
    3ecf  vmovdqu ymm4,[rsi+760h]
    3ed7  vpsrlw ymm3,ymm2,4
    3edc  vpsrlw ymm5,ymm4,4
    3ee1  vpand ymm2,ymm2,ymm0
    3ee5  vpand ymm4,ymm4,ymm0
    3ee9  vpand ymm3,ymm3,ymm0
    3eed  vpand ymm5,ymm5,ymm0
    3ef1  vpshufb ymm2,ymm1,ymm2
    3ef6  vpshufb ymm4,ymm1,ymm4
    3efb  vpshufb ymm3,ymm1,ymm3
    3f00  vpshufb ymm5,ymm1,ymm5
    3f05  vpmaddubsw ymm14,ymm2,ymm6
    3f0a  vpmaddubsw ymm15,ymm4,ymm6
    3f0f  vpmaddubsw ymm3,ymm3,ymm7
    3f14  vpmaddubsw ymm5,ymm5,ymm7
    3f19  vpaddw ymm14,ymm14,ymm3
    3f1d  vpaddw ymm15,ymm15,ymm5
    3f21  vpbroadcastd ymm6,[r9+r8*8+18h]
    3f28  vpbroadcastd ymm7,[r9+r8*8+1Ch]
    3f2f  prefetcht1 [rdx+540h]
    3f36  vmovdqu ymm2,[rsi+540h]
    3f3e  vmovdqu ymm4,[rsi+560h]
    3f46  vpsrlw ymm3,ymm2,4
    3f4b  vpsrlw ymm5,ymm4,4
    3f50  vpand ymm2,ymm2,ymm0
    3f54  vpand ymm4,ymm4,ymm0
    3f58  vpand ymm3,ymm3,ymm0
    3f5c  vpand ymm5,ymm5,ymm0
    3f60  vpshufb ymm2,ymm1,ymm2
    3f65  vpshufb ymm4,ymm1,ymm4
    3f6a  vpshufb ymm3,ymm1,ymm3
    3f6f  vpshufb ymm5,ymm1,ymm5
    3f74  vpmaddubsw ymm2,ymm2,ymm6
    3f79  vpmaddubsw ymm4,ymm4,ymm6
    3f7e  vpmaddubsw ymm3,ymm3,ymm7
    3f83  vpmaddubsw ymm5,ymm5,ymm7
    3f88  vpaddw ymm12,ymm12,ymm2
    3f8c  vpaddw ymm13,ymm13,ymm4
    3f90  vpaddw ymm12,ymm12,ymm3
    3f94  vpaddw ymm13,ymm13,ymm5
    3f98  vpmaddwd ymm12,ymm12,[rsp+120h]
    3fa1  vpmaddwd ymm13,ymm13,[rsp+120h]
    3faa  vpaddd ymm8,ymm8,ymm12
    3faf  vpaddd ymm9,ymm9,ymm13
    3fb4  prefetcht1 [rdx+780h]
    3fbb  vmovdqu ymm2,[rsi+780h]
    3fc3  vmovdqu ymm4,[rsi+7A0h]
    3fcb  vpsrlw ymm3,ymm2,4
    3fd0  vpsrlw ymm5,ymm4,4
    3fd5  vpand ymm2,ymm2,ymm0
    3fd9  vpand ymm4,ymm4,ymm0
    3fdd  vpand ymm3,ymm3,ymm0
    3fe1  vpand ymm5,ymm5,ymm0
    3fe5  vpshufb ymm2,ymm1,ymm2
    3fea  vpshufb ymm4,ymm1,ymm4
    3fef  vpshufb ymm3,ymm1,ymm3
    3ff4  vpshufb ymm5,ymm1,ymm5
    3ff9  vpmaddubsw ymm2,ymm2,ymm6
    3ffe  vpmaddubsw ymm4,ymm4,ymm6
    4003  vpmaddubsw ymm3,ymm3,ymm7
    4008  vpmaddubsw ymm5,ymm5,ymm7
    400d  vpaddw ymm14,ymm14,ymm2
    4011  vpaddw ymm15,ymm15,ymm4
    4015  vpaddw ymm14,ymm14,ymm3
    4019  vpaddw ymm15,ymm15,ymm5
    401d  vpmaddwd ymm14,ymm14,[rsp+120h]
    4026  vpmaddwd ymm15,ymm15,[rsp+120h]
    402f  vpaddd ymm10,ymm10,ymm14
    4034  vpaddd ymm11,ymm11,ymm15
    4039  vbroadcastss ymm6,[r9+r8+40h]
    4040  vpmovzxbd ymm2,[rdi+480h]
    4049  vpslld ymm2,ymm2,17h
    404e  vpaddd ymm2,ymm2,[rsp+140h]
    4057  vpaddd ymm8,ymm8,ymm2
    405b  vsubps ymm8,ymm8,ymm2
    405f  vfmadd213ps ymm8,ymm6,[rsp+80h]
    4069  vmovups [rsp+80h],ymm8
    4072  vpmovzxbd ymm2,[rdi+488h]
    407b  vpslld ymm2,ymm2,17h
    4080  vpaddd ymm2,ymm2,[rsp+140h]
    4089  vpaddd ymm9,ymm9,ymm2
    408d  vsubps ymm9,ymm9,ymm2
    4091  vfmadd213ps ymm9,ymm6,[rsp+0A0h]
    409b  vmovups [rsp+0A0h],ymm9
    40a4  vpmovzxbd ymm2,[rdi+6C0h]
    40ad  vpslld ymm2,ymm2,17h
    40b2  vpaddd ymm2,ymm2,[rsp+140h]
    40bb  vpaddd ymm10,ymm10,ymm2
    40bf  vsubps ymm10,ymm10,ymm2
    40c3  vfmadd213ps ymm10,ymm6,[rsp+0C0h]
    40cd  vmovups [rsp+0C0h],ymm10
    40d6  vpmovzxbd ymm2,[rdi+6C8h]
    40df  vpslld ymm2,ymm2,17h
    40e4  vpaddd ymm2,ymm2,[rsp+140h]
    40ed  vpaddd ymm11,ymm11,ymm2
    40f1  vsubps ymm11,ymm11,ymm2
    40f5  vfmadd213ps ymm11,ymm6,[rsp+0E0h]
    40ff  vmovups [rsp+0E0h],ymm11
    4108  add rdi,10h
    410c  add rsi,100h
    4113  add rdx,100h
    411a  add r8,4
    411e  cmp r8,8
    4122  jne near 0000000000003794h
    4128  mov rsi,[rsp+160h]
    4130  mov r8,[rsp+168h]
    4138  vmovups ymm8,[rsp]
    413d  vmovups [rsi],ymm8
    4141  vmovups ymm8,[rsp+20h]
    4147  vmovups [rsi+20h],ymm8
    414c  vmovups ymm8,[rsp+80h]
    4155  vmovups [rsi+40h],ymm8
    415a  vmovups ymm8,[rsp+0A0h]
    4163  vmovups [rsi+60h],ymm8
    4168  vmovups ymm8,[rsp+40h]
    416e  vmovups [rsi+80h],ymm8
    4176  vmovups ymm8,[rsp+60h]
    417c  vmovups [rsi+0A0h],ymm8
    4184  vmovups ymm8,[rsp+0C0h]
    418d  vmovups [rsi+0C0h],ymm8
    4195  vmovups ymm8,[rsp+0E0h]
    419e  vmovups [rsi+0E0h],ymm8
    41a6  add rsp,170h
    41ad  vzeroupper
    41b0  ret
    41b1  (bad)
    41b5  add byte [rax+18080h],1
    41bc  add [rax],al
    41be  add [rax+0Bh],al
    41c1  hlt
    41c2  (bad)
    41c4  dec dword [rcx*1+12100F0Eh]
    41cb  adc al,18h
    41cd  or al,0Bh
    41cf  or cl,[rcx]
    41d1  or [rsi],al
    41d3  add al,0
