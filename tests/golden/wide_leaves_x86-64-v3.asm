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
     901  test rcx,rcx
     904  je near 0000000000000CFFh
     90a  mov rax,rdx
     90d  vmovups ymm10,[rax]
     911  add rax,r8
     914  vmovups ymm11,[rax]
     918  add rax,r8
     91b  lea r10,[rdi]
     91e  mov r11,rsi
     921  mov rbx,rcx
     924  vpbroadcastd ymm4,[r11+0D8h]
     92d  vpbroadcastd ymm5,[r11+0DCh]
     936  vmovdqu ymm0,[r10+80h]
     93f  vmovdqu ymm1,[r10+0C0h]
     948  vpbroadcastd ymm2,[r11]
     94d  vpmaddubsw ymm2,ymm0,ymm2
     952  vpbroadcastd ymm3,[r11+4]
     958  vpmaddubsw ymm3,ymm1,ymm3
     95d  vpaddw ymm2,ymm2,ymm3
     961  vpmaddwd ymm2,ymm2,[rel 0D04h]
     969  vpaddd ymm4,ymm4,ymm2
     96d  vpbroadcastd ymm2,[r11+20h]
     973  vpmaddubsw ymm2,ymm0,ymm2
     978  vpbroadcastd ymm3,[r11+24h]
     97e  vpmaddubsw ymm3,ymm1,ymm3
     983  vpaddw ymm2,ymm2,ymm3
     987  vpmaddwd ymm2,ymm2,[rel 0D04h]
     98f  vpaddd ymm5,ymm5,ymm2
     993  vmovdqu ymm0,[r10+100h]
     99c  vmovdqu ymm1,[r10+140h]
     9a5  vpbroadcastd ymm2,[r11+8]
     9ab  vpmaddubsw ymm2,ymm0,ymm2
     9b0  vpbroadcastd ymm3,[r11+0Ch]
     9b6  vpmaddubsw ymm3,ymm1,ymm3
     9bb  vpaddw ymm2,ymm2,ymm3
     9bf  vpmaddwd ymm2,ymm2,[rel 0D04h]
     9c7  vpaddd ymm4,ymm4,ymm2
     9cb  vpbroadcastd ymm2,[r11+28h]
     9d1  vpmaddubsw ymm2,ymm0,ymm2
     9d6  vpbroadcastd ymm3,[r11+2Ch]
     9dc  vpmaddubsw ymm3,ymm1,ymm3
     9e1  vpaddw ymm2,ymm2,ymm3
     9e5  vpmaddwd ymm2,ymm2,[rel 0D04h]
     9ed  vpaddd ymm5,ymm5,ymm2
     9f1  vmovdqu ymm0,[r10+180h]
     9fa  vmovdqu ymm1,[r10+1C0h]
     a03  vpbroadcastd ymm2,[r11+10h]
     a09  vpmaddubsw ymm2,ymm0,ymm2
     a0e  vpbroadcastd ymm3,[r11+14h]
     a14  vpmaddubsw ymm3,ymm1,ymm3
     a19  vpaddw ymm2,ymm2,ymm3
     a1d  vpmaddwd ymm2,ymm2,[rel 0D04h]
     a25  vpaddd ymm4,ymm4,ymm2
     a29  vpbroadcastd ymm2,[r11+30h]
     a2f  vpmaddubsw ymm2,ymm0,ymm2
     a34  vpbroadcastd ymm3,[r11+34h]
     a3a  vpmaddubsw ymm3,ymm1,ymm3
     a3f  vpaddw ymm2,ymm2,ymm3
     a43  vpmaddwd ymm2,ymm2,[rel 0D04h]
     a4b  vpaddd ymm5,ymm5,ymm2
     a4f  vmovdqu ymm0,[r10+200h]
     a58  vmovdqu ymm1,[r10+240h]
     a61  vpbroadcastd ymm2,[r11+18h]
     a67  vpmaddubsw ymm2,ymm0,ymm2
     a6c  vpbroadcastd ymm3,[r11+1Ch]
     a72  vpmaddubsw ymm3,ymm1,ymm3
     a77  vpaddw ymm2,ymm2,ymm3
     a7b  vpmaddwd ymm2,ymm2,[rel 0D04h]
     a83  vpaddd ymm4,ymm4,ymm2
     a87  vpbroadcastd ymm2,[r11+38h]
     a8d  vpmaddubsw ymm2,ymm0,ymm2
     a92  vpbroadcastd ymm3,[r11+3Ch]
     a98  vpmaddubsw ymm3,ymm1,ymm3
     a9d  vpaddw ymm2,ymm2,ymm3
     aa1  vpmaddwd ymm2,ymm2,[rel 0D04h]
     aa9  vpaddd ymm5,ymm5,ymm2
     aad  vmovups ymm0,[r10]
     ab2  vbroadcastss ymm2,[r11+0C0h]
     abb  vfmadd213ps ymm4,ymm0,[r10+40h]
     ac1  vfmadd231ps ymm10,ymm4,ymm2
     ac6  vbroadcastss ymm2,[r11+0C4h]
     acf  vfmadd213ps ymm5,ymm0,[r10+40h]
     ad5  vfmadd231ps ymm11,ymm5,ymm2
     ada  add r10,280h
     ae1  add r11,100h
     ae8  dec rbx
     aeb  jne near 0000000000000924h
     af1  mov rax,rdx
     af4  vmovups [rax],ymm10
     af8  add rax,r8
     afb  vmovups [rax],ymm11
     aff  add rax,r8
     b02  mov rax,rdx
     b05  vmovups ymm10,[rax+20h]
     b0a  add rax,r8
     b0d  vmovups ymm11,[rax+20h]
     b12  add rax,r8
     b15  lea r10,[rdi+20h]
     b19  mov r11,rsi
     b1c  mov rbx,rcx
     b1f  vpbroadcastd ymm4,[r11+0D8h]
     b28  vpbroadcastd ymm5,[r11+0DCh]
     b31  vmovdqu ymm0,[r10+80h]
     b3a  vmovdqu ymm1,[r10+0C0h]
     b43  vpbroadcastd ymm2,[r11]
     b48  vpmaddubsw ymm2,ymm0,ymm2
     b4d  vpbroadcastd ymm3,[r11+4]
     b53  vpmaddubsw ymm3,ymm1,ymm3
     b58  vpaddw ymm2,ymm2,ymm3
     b5c  vpmaddwd ymm2,ymm2,[rel 0D04h]
     b64  vpaddd ymm4,ymm4,ymm2
     b68  vpbroadcastd ymm2,[r11+20h]
     b6e  vpmaddubsw ymm2,ymm0,ymm2
     b73  vpbroadcastd ymm3,[r11+24h]
     b79  vpmaddubsw ymm3,ymm1,ymm3
     b7e  vpaddw ymm2,ymm2,ymm3
     b82  vpmaddwd ymm2,ymm2,[rel 0D04h]
     b8a  vpaddd ymm5,ymm5,ymm2
     b8e  vmovdqu ymm0,[r10+100h]
     b97  vmovdqu ymm1,[r10+140h]
     ba0  vpbroadcastd ymm2,[r11+8]
     ba6  vpmaddubsw ymm2,ymm0,ymm2
     bab  vpbroadcastd ymm3,[r11+0Ch]
     bb1  vpmaddubsw ymm3,ymm1,ymm3
     bb6  vpaddw ymm2,ymm2,ymm3
     bba  vpmaddwd ymm2,ymm2,[rel 0D04h]
     bc2  vpaddd ymm4,ymm4,ymm2
     bc6  vpbroadcastd ymm2,[r11+28h]
     bcc  vpmaddubsw ymm2,ymm0,ymm2
     bd1  vpbroadcastd ymm3,[r11+2Ch]
     bd7  vpmaddubsw ymm3,ymm1,ymm3
     bdc  vpaddw ymm2,ymm2,ymm3
     be0  vpmaddwd ymm2,ymm2,[rel 0D04h]
     be8  vpaddd ymm5,ymm5,ymm2
     bec  vmovdqu ymm0,[r10+180h]
     bf5  vmovdqu ymm1,[r10+1C0h]
     bfe  vpbroadcastd ymm2,[r11+10h]
     c04  vpmaddubsw ymm2,ymm0,ymm2
     c09  vpbroadcastd ymm3,[r11+14h]
     c0f  vpmaddubsw ymm3,ymm1,ymm3
     c14  vpaddw ymm2,ymm2,ymm3
     c18  vpmaddwd ymm2,ymm2,[rel 0D04h]
     c20  vpaddd ymm4,ymm4,ymm2
     c24  vpbroadcastd ymm2,[r11+30h]
     c2a  vpmaddubsw ymm2,ymm0,ymm2
     c2f  vpbroadcastd ymm3,[r11+34h]
     c35  vpmaddubsw ymm3,ymm1,ymm3
     c3a  vpaddw ymm2,ymm2,ymm3
     c3e  vpmaddwd ymm2,ymm2,[rel 0D04h]
     c46  vpaddd ymm5,ymm5,ymm2
     c4a  vmovdqu ymm0,[r10+200h]
     c53  vmovdqu ymm1,[r10+240h]
     c5c  vpbroadcastd ymm2,[r11+18h]
     c62  vpmaddubsw ymm2,ymm0,ymm2
     c67  vpbroadcastd ymm3,[r11+1Ch]
     c6d  vpmaddubsw ymm3,ymm1,ymm3
     c72  vpaddw ymm2,ymm2,ymm3
     c76  vpmaddwd ymm2,ymm2,[rel 0D04h]
     c7e  vpaddd ymm4,ymm4,ymm2
     c82  vpbroadcastd ymm2,[r11+38h]
     c88  vpmaddubsw ymm2,ymm0,ymm2
     c8d  vpbroadcastd ymm3,[r11+3Ch]
     c93  vpmaddubsw ymm3,ymm1,ymm3
     c98  vpaddw ymm2,ymm2,ymm3
     c9c  vpmaddwd ymm2,ymm2,[rel 0D04h]
     ca4  vpaddd ymm5,ymm5,ymm2
     ca8  vmovups ymm0,[r10]
     cad  vbroadcastss ymm2,[r11+0C0h]
     cb6  vfmadd213ps ymm4,ymm0,[r10+40h]
     cbc  vfmadd231ps ymm10,ymm4,ymm2
     cc1  vbroadcastss ymm2,[r11+0C4h]
     cca  vfmadd213ps ymm5,ymm0,[r10+40h]
     cd0  vfmadd231ps ymm11,ymm5,ymm2
     cd5  add r10,280h
     cdc  add r11,100h
     ce3  dec rbx
     ce6  jne near 0000000000000B1Fh
     cec  mov rax,rdx
     cef  vmovups [rax+20h],ymm10
     cf4  add rax,r8
     cf7  vmovups [rax+20h],ymm11
     cfc  add rax,r8
     cff  vzeroupper
     d02  pop rbx
     d03  ret
     d04  add [rax],eax
     d06  add [rax],eax
     d08  add [rax],eax
     d0a  add [rax],eax
     d0c  add [rax],eax
     d0e  add [rax],eax
     d10  add [rax],eax
     d12  add [rax],eax
     d14  add [rax],eax
     d16  add [rax],eax
     d18  add [rax],eax
     d1a  add [rax],eax
     d1c  add [rax],eax
     d1e  add [rax],eax
     d20  add [rax],eax
     d22  add [rax],eax
     d24  add byte [rax-7F7F7F80h],80h
     d2b  add byte [rax-7F7F7F80h],80h
     d32  add byte [rax-7F7F7F80h],80h
     d39  add byte [rax-7F7F7F80h],80h
     d40  add byte [rax+8080h],40h
     d47  add [r8],al
     d4a  add [r8],al
     d4e  add [r8],al
     d52  add [r8],al
     d56  add [r8],al
     d5a  add [r8],al
     d5e  add [r8],al
     d62  (bad)

gemm_byte_q8_1x2:
     d80  push rbx
     d81  test rcx,rcx
     d84  je near 00000000000012C8h
     d8a  mov rax,rdx
     d8d  vmovups ymm9,[rax]
     d91  vmovups ymm10,[rax+20h]
     d96  add rax,r8
     d99  vmovups ymm11,[rax]
     d9d  vmovups ymm12,[rax+20h]
     da2  add rax,r8
     da5  lea r10,[rdi]
     da8  mov r11,rsi
     dab  mov rbx,rcx
     dae  vmovdqu ymm5,[rel 130Dh]
     db6  vmovdqu ymm6,[rel 130Dh]
     dbe  vmovdqu ymm7,[rel 130Dh]
     dc6  vmovdqu ymm8,[rel 130Dh]
     dce  vmovdqu ymm0,[r10+80h]
     dd7  vpxor ymm0,ymm0,[rel 12EDh]
     ddf  vmovdqu ymm1,[r10+0A0h]
     de8  vpxor ymm1,ymm1,[rel 12EDh]
     df0  vpbroadcastd ymm2,[r11]
     df5  vpabsb ymm3,ymm2
     dfa  vpsignb ymm4,ymm0,ymm2
     dff  vpmaddubsw ymm4,ymm3,ymm4
     e04  vpmaddwd ymm4,ymm4,[rel 12CDh]
     e0c  vpaddd ymm5,ymm5,ymm4
     e10  vpsignb ymm4,ymm1,ymm2
     e15  vpmaddubsw ymm4,ymm3,ymm4
     e1a  vpmaddwd ymm4,ymm4,[rel 12CDh]
     e22  vpaddd ymm6,ymm6,ymm4
     e26  vpbroadcastd ymm2,[r11+20h]
     e2c  vpabsb ymm3,ymm2
     e31  vpsignb ymm4,ymm0,ymm2
     e36  vpmaddubsw ymm4,ymm3,ymm4
     e3b  vpmaddwd ymm4,ymm4,[rel 12CDh]
     e43  vpaddd ymm7,ymm7,ymm4
     e47  vpsignb ymm4,ymm1,ymm2
     e4c  vpmaddubsw ymm4,ymm3,ymm4
     e51  vpmaddwd ymm4,ymm4,[rel 12CDh]
     e59  vpaddd ymm8,ymm8,ymm4
     e5d  vmovdqu ymm0,[r10+0C0h]
     e66  vpxor ymm0,ymm0,[rel 12EDh]
     e6e  vmovdqu ymm1,[r10+0E0h]
     e77  vpxor ymm1,ymm1,[rel 12EDh]
     e7f  vpbroadcastd ymm2,[r11+4]
     e85  vpabsb ymm3,ymm2
     e8a  vpsignb ymm4,ymm0,ymm2
     e8f  vpmaddubsw ymm4,ymm3,ymm4
     e94  vpmaddwd ymm4,ymm4,[rel 12CDh]
     e9c  vpaddd ymm5,ymm5,ymm4
     ea0  vpsignb ymm4,ymm1,ymm2
     ea5  vpmaddubsw ymm4,ymm3,ymm4
     eaa  vpmaddwd ymm4,ymm4,[rel 12CDh]
     eb2  vpaddd ymm6,ymm6,ymm4
     eb6  vpbroadcastd ymm2,[r11+24h]
     ebc  vpabsb ymm3,ymm2
     ec1  vpsignb ymm4,ymm0,ymm2
     ec6  vpmaddubsw ymm4,ymm3,ymm4
     ecb  vpmaddwd ymm4,ymm4,[rel 12CDh]
     ed3  vpaddd ymm7,ymm7,ymm4
     ed7  vpsignb ymm4,ymm1,ymm2
     edc  vpmaddubsw ymm4,ymm3,ymm4
     ee1  vpmaddwd ymm4,ymm4,[rel 12CDh]
     ee9  vpaddd ymm8,ymm8,ymm4
     eed  vmovdqu ymm0,[r10+100h]
     ef6  vpxor ymm0,ymm0,[rel 12EDh]
     efe  vmovdqu ymm1,[r10+120h]
     f07  vpxor ymm1,ymm1,[rel 12EDh]
     f0f  vpbroadcastd ymm2,[r11+8]
     f15  vpabsb ymm3,ymm2
     f1a  vpsignb ymm4,ymm0,ymm2
     f1f  vpmaddubsw ymm4,ymm3,ymm4
     f24  vpmaddwd ymm4,ymm4,[rel 12CDh]
     f2c  vpaddd ymm5,ymm5,ymm4
     f30  vpsignb ymm4,ymm1,ymm2
     f35  vpmaddubsw ymm4,ymm3,ymm4
     f3a  vpmaddwd ymm4,ymm4,[rel 12CDh]
     f42  vpaddd ymm6,ymm6,ymm4
     f46  vpbroadcastd ymm2,[r11+28h]
     f4c  vpabsb ymm3,ymm2
     f51  vpsignb ymm4,ymm0,ymm2
     f56  vpmaddubsw ymm4,ymm3,ymm4
     f5b  vpmaddwd ymm4,ymm4,[rel 12CDh]
     f63  vpaddd ymm7,ymm7,ymm4
     f67  vpsignb ymm4,ymm1,ymm2
     f6c  vpmaddubsw ymm4,ymm3,ymm4
     f71  vpmaddwd ymm4,ymm4,[rel 12CDh]
     f79  vpaddd ymm8,ymm8,ymm4
     f7d  vmovdqu ymm0,[r10+140h]
     f86  vpxor ymm0,ymm0,[rel 12EDh]
     f8e  vmovdqu ymm1,[r10+160h]
     f97  vpxor ymm1,ymm1,[rel 12EDh]
     f9f  vpbroadcastd ymm2,[r11+0Ch]
     fa5  vpabsb ymm3,ymm2
     faa  vpsignb ymm4,ymm0,ymm2
     faf  vpmaddubsw ymm4,ymm3,ymm4
     fb4  vpmaddwd ymm4,ymm4,[rel 12CDh]
     fbc  vpaddd ymm5,ymm5,ymm4
     fc0  vpsignb ymm4,ymm1,ymm2
     fc5  vpmaddubsw ymm4,ymm3,ymm4
     fca  vpmaddwd ymm4,ymm4,[rel 12CDh]
     fd2  vpaddd ymm6,ymm6,ymm4
     fd6  vpbroadcastd ymm2,[r11+2Ch]
     fdc  vpabsb ymm3,ymm2
     fe1  vpsignb ymm4,ymm0,ymm2
     fe6  vpmaddubsw ymm4,ymm3,ymm4
     feb  vpmaddwd ymm4,ymm4,[rel 12CDh]
     ff3  vpaddd ymm7,ymm7,ymm4
     ff7  vpsignb ymm4,ymm1,ymm2
     ffc  vpmaddubsw ymm4,ymm3,ymm4
    1001  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1009  vpaddd ymm8,ymm8,ymm4
    100d  vmovdqu ymm0,[r10+180h]
    1016  vpxor ymm0,ymm0,[rel 12EDh]
    101e  vmovdqu ymm1,[r10+1A0h]
    1027  vpxor ymm1,ymm1,[rel 12EDh]
    102f  vpbroadcastd ymm2,[r11+10h]
    1035  vpabsb ymm3,ymm2
    103a  vpsignb ymm4,ymm0,ymm2
    103f  vpmaddubsw ymm4,ymm3,ymm4
    1044  vpmaddwd ymm4,ymm4,[rel 12CDh]
    104c  vpaddd ymm5,ymm5,ymm4
    1050  vpsignb ymm4,ymm1,ymm2
    1055  vpmaddubsw ymm4,ymm3,ymm4
    105a  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1062  vpaddd ymm6,ymm6,ymm4
    1066  vpbroadcastd ymm2,[r11+30h]
    106c  vpabsb ymm3,ymm2
    1071  vpsignb ymm4,ymm0,ymm2
    1076  vpmaddubsw ymm4,ymm3,ymm4
    107b  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1083  vpaddd ymm7,ymm7,ymm4
    1087  vpsignb ymm4,ymm1,ymm2
    108c  vpmaddubsw ymm4,ymm3,ymm4
    1091  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1099  vpaddd ymm8,ymm8,ymm4
    109d  vmovdqu ymm0,[r10+1C0h]
    10a6  vpxor ymm0,ymm0,[rel 12EDh]
    10ae  vmovdqu ymm1,[r10+1E0h]
    10b7  vpxor ymm1,ymm1,[rel 12EDh]
    10bf  vpbroadcastd ymm2,[r11+14h]
    10c5  vpabsb ymm3,ymm2
    10ca  vpsignb ymm4,ymm0,ymm2
    10cf  vpmaddubsw ymm4,ymm3,ymm4
    10d4  vpmaddwd ymm4,ymm4,[rel 12CDh]
    10dc  vpaddd ymm5,ymm5,ymm4
    10e0  vpsignb ymm4,ymm1,ymm2
    10e5  vpmaddubsw ymm4,ymm3,ymm4
    10ea  vpmaddwd ymm4,ymm4,[rel 12CDh]
    10f2  vpaddd ymm6,ymm6,ymm4
    10f6  vpbroadcastd ymm2,[r11+34h]
    10fc  vpabsb ymm3,ymm2
    1101  vpsignb ymm4,ymm0,ymm2
    1106  vpmaddubsw ymm4,ymm3,ymm4
    110b  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1113  vpaddd ymm7,ymm7,ymm4
    1117  vpsignb ymm4,ymm1,ymm2
    111c  vpmaddubsw ymm4,ymm3,ymm4
    1121  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1129  vpaddd ymm8,ymm8,ymm4
    112d  vmovdqu ymm0,[r10+200h]
    1136  vpxor ymm0,ymm0,[rel 12EDh]
    113e  vmovdqu ymm1,[r10+220h]
    1147  vpxor ymm1,ymm1,[rel 12EDh]
    114f  vpbroadcastd ymm2,[r11+18h]
    1155  vpabsb ymm3,ymm2
    115a  vpsignb ymm4,ymm0,ymm2
    115f  vpmaddubsw ymm4,ymm3,ymm4
    1164  vpmaddwd ymm4,ymm4,[rel 12CDh]
    116c  vpaddd ymm5,ymm5,ymm4
    1170  vpsignb ymm4,ymm1,ymm2
    1175  vpmaddubsw ymm4,ymm3,ymm4
    117a  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1182  vpaddd ymm6,ymm6,ymm4
    1186  vpbroadcastd ymm2,[r11+38h]
    118c  vpabsb ymm3,ymm2
    1191  vpsignb ymm4,ymm0,ymm2
    1196  vpmaddubsw ymm4,ymm3,ymm4
    119b  vpmaddwd ymm4,ymm4,[rel 12CDh]
    11a3  vpaddd ymm7,ymm7,ymm4
    11a7  vpsignb ymm4,ymm1,ymm2
    11ac  vpmaddubsw ymm4,ymm3,ymm4
    11b1  vpmaddwd ymm4,ymm4,[rel 12CDh]
    11b9  vpaddd ymm8,ymm8,ymm4
    11bd  vmovdqu ymm0,[r10+240h]
    11c6  vpxor ymm0,ymm0,[rel 12EDh]
    11ce  vmovdqu ymm1,[r10+260h]
    11d7  vpxor ymm1,ymm1,[rel 12EDh]
    11df  vpbroadcastd ymm2,[r11+1Ch]
    11e5  vpabsb ymm3,ymm2
    11ea  vpsignb ymm4,ymm0,ymm2
    11ef  vpmaddubsw ymm4,ymm3,ymm4
    11f4  vpmaddwd ymm4,ymm4,[rel 12CDh]
    11fc  vpaddd ymm5,ymm5,ymm4
    1200  vpsignb ymm4,ymm1,ymm2
    1205  vpmaddubsw ymm4,ymm3,ymm4
    120a  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1212  vpaddd ymm6,ymm6,ymm4
    1216  vpbroadcastd ymm2,[r11+3Ch]
    121c  vpabsb ymm3,ymm2
    1221  vpsignb ymm4,ymm0,ymm2
    1226  vpmaddubsw ymm4,ymm3,ymm4
    122b  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1233  vpaddd ymm7,ymm7,ymm4
    1237  vpsignb ymm4,ymm1,ymm2
    123c  vpmaddubsw ymm4,ymm3,ymm4
    1241  vpmaddwd ymm4,ymm4,[rel 12CDh]
    1249  vpaddd ymm8,ymm8,ymm4
    124d  vmovups ymm0,[r10]
    1252  vmovups ymm1,[r10+20h]
    1258  vbroadcastss ymm2,[r11+0C0h]
    1261  vfmadd213ps ymm5,ymm0,[r10+40h]
    1267  vfmadd231ps ymm9,ymm5,ymm2
    126c  vfmadd213ps ymm6,ymm1,[r10+60h]
    1272  vfmadd231ps ymm10,ymm6,ymm2
    1277  vbroadcastss ymm2,[r11+0C4h]
    1280  vfmadd213ps ymm7,ymm0,[r10+40h]
    1286  vfmadd231ps ymm11,ymm7,ymm2
    128b  vfmadd213ps ymm8,ymm1,[r10+60h]
    1291  vfmadd231ps ymm12,ymm8,ymm2
    1296  add r10,280h
    129d  add r11,100h
    12a4  dec rbx
    12a7  jne near 0000000000000DAEh
    12ad  mov rax,rdx
    12b0  vmovups [rax],ymm9
    12b4  vmovups [rax+20h],ymm10
    12b9  add rax,r8
    12bc  vmovups [rax],ymm11
    12c0  vmovups [rax+20h],ymm12
    12c5  add rax,r8
    12c8  vzeroupper
    12cb  pop rbx
    12cc  ret
    12cd  add [rax],eax
    12cf  add [rax],eax
    12d1  add [rax],eax
    12d3  add [rax],eax
    12d5  add [rax],eax
    12d7  add [rax],eax
    12d9  add [rax],eax
    12db  add [rax],eax
    12dd  add [rax],eax
    12df  add [rax],eax
    12e1  add [rax],eax
    12e3  add [rax],eax
    12e5  add [rax],eax
    12e7  add [rax],eax
    12e9  add [rax],eax
    12eb  add [rax],eax
    12ed  add byte [rax-7F7F7F80h],80h
    12f4  add byte [rax-7F7F7F80h],80h
    12fb  add byte [rax-7F7F7F80h],80h
    1302  add byte [rax-7F7F7F80h],80h
    1309  add byte [rax+8080h],40h
    1310  add [r8],al
    1313  add [r8],al
    1317  add [r8],al
    131b  add [r8],al
    131f  add [r8],al
    1323  add [r8],al
    1327  add [r8],al
    132b  (bad)

decode_mxfp4:
    1340  lea r8,[rel 1550h]
    1347  vmovdqu ymm0,[r8+20h]
    134d  test rcx,rcx
    1350  je near 000000000000154Ch
    1356  vpmovzxbd ymm9,[rdi]
    135b  vpslld ymm9,ymm9,17h
    1361  vpmaxud ymm9,ymm9,[r8+80h]
    136a  vmulps ymm9,ymm9,[r8+0A0h]
    1373  vmulps ymm10,ymm9,[r8+0E0h]
    137c  vmovups [rdx],ymm9
    1380  vmovups [rdx+40h],ymm10
    1385  vpmovzxbd ymm9,[rdi+8]
    138b  vpslld ymm9,ymm9,17h
    1391  vpmaxud ymm9,ymm9,[r8+80h]
    139a  vmulps ymm9,ymm9,[r8+0A0h]
    13a3  vmulps ymm10,ymm9,[r8+0E0h]
    13ac  vmovups [rdx+20h],ymm9
    13b1  vmovups [rdx+60h],ymm10
    13b6  vmovdqu ymm1,[rsi]
    13ba  vpsrlw ymm2,ymm1,4
    13bf  vpand ymm1,ymm1,[r8]
    13c4  vpand ymm2,ymm2,[r8]
    13c9  vpshufb ymm1,ymm0,ymm1
    13ce  vpshufb ymm2,ymm0,ymm2
    13d3  vmovdqu [rdx+80h],ymm1
    13db  vmovdqu [rdx+0C0h],ymm2
    13e3  vmovdqu ymm3,[rsi+20h]
    13e8  vpsrlw ymm4,ymm3,4
    13ed  vpand ymm3,ymm3,[r8]
    13f2  vpand ymm4,ymm4,[r8]
    13f7  vpshufb ymm3,ymm0,ymm3
    13fc  vpshufb ymm4,ymm0,ymm4
    1401  vmovdqu [rdx+0A0h],ymm3
    1409  vmovdqu [rdx+0E0h],ymm4
    1411  vmovdqu ymm5,[rsi+40h]
    1416  vpsrlw ymm6,ymm5,4
    141b  vpand ymm5,ymm5,[r8]
    1420  vpand ymm6,ymm6,[r8]
    1425  vpshufb ymm5,ymm0,ymm5
    142a  vpshufb ymm6,ymm0,ymm6
    142f  vmovdqu [rdx+100h],ymm5
    1437  vmovdqu [rdx+140h],ymm6
    143f  vmovdqu ymm7,[rsi+60h]
    1444  vpsrlw ymm8,ymm7,4
    1449  vpand ymm7,ymm7,[r8]
    144e  vpand ymm8,ymm8,[r8]
    1453  vpshufb ymm7,ymm0,ymm7
    1458  vpshufb ymm8,ymm0,ymm8
    145d  vmovdqu [rdx+120h],ymm7
    1465  vmovdqu [rdx+160h],ymm8
    146d  vmovdqu ymm1,[rsi+80h]
    1475  vpsrlw ymm2,ymm1,4
    147a  vpand ymm1,ymm1,[r8]
    147f  vpand ymm2,ymm2,[r8]
    1484  vpshufb ymm1,ymm0,ymm1
    1489  vpshufb ymm2,ymm0,ymm2
    148e  vmovdqu [rdx+180h],ymm1
    1496  vmovdqu [rdx+1C0h],ymm2
    149e  vmovdqu ymm3,[rsi+0A0h]
    14a6  vpsrlw ymm4,ymm3,4
    14ab  vpand ymm3,ymm3,[r8]
    14b0  vpand ymm4,ymm4,[r8]
    14b5  vpshufb ymm3,ymm0,ymm3
    14ba  vpshufb ymm4,ymm0,ymm4
    14bf  vmovdqu [rdx+1A0h],ymm3
    14c7  vmovdqu [rdx+1E0h],ymm4
    14cf  vmovdqu ymm5,[rsi+0C0h]
    14d7  vpsrlw ymm6,ymm5,4
    14dc  vpand ymm5,ymm5,[r8]
    14e1  vpand ymm6,ymm6,[r8]
    14e6  vpshufb ymm5,ymm0,ymm5
    14eb  vpshufb ymm6,ymm0,ymm6
    14f0  vmovdqu [rdx+200h],ymm5
    14f8  vmovdqu [rdx+240h],ymm6
    1500  vmovdqu ymm7,[rsi+0E0h]
    1508  vpsrlw ymm8,ymm7,4
    150d  vpand ymm7,ymm7,[r8]
    1512  vpand ymm8,ymm8,[r8]
    1517  vpshufb ymm7,ymm0,ymm7
    151c  vpshufb ymm8,ymm0,ymm8
    1521  vmovdqu [rdx+220h],ymm7
    1529  vmovdqu [rdx+260h],ymm8
    1531  add rdi,10h
    1535  add rsi,100h
    153c  add rdx,280h
    1543  dec rcx
    1546  jne near 0000000000001356h
    154c  vzeroupper
    154f  ret
    1550  (bad)
    1554  (bad)
    1558  (bad)
    155c  (bad)
    1560  (bad)
    1564  (bad)
    1568  (bad)
    156c  (bad)
    1570  or al,0Dh
    1572  (bad)
    1574  adc [rdx],dl
    1576  adc al,18h
    1578  or al,0Bh
    157a  or cl,[rcx]
    157c  or [rsi],al
    157e  add al,0
    1580  or al,0Dh
    1582  (bad)
    1584  adc [rdx],dl
    1586  adc al,18h
    1588  or al,0Bh
    158a  or cl,[rcx]
    158c  or [rsi],al
    158e  add al,0
    1590  add [rax],eax
    1592  add [rax],eax
    1594  add [rax],eax
    1596  add [rax],eax
    1598  add [rax],eax
    159a  add [rax],eax
    159c  add [rax],eax
    159e  add [rax],eax
    15a0  add [rax],eax
    15a2  add [rax],eax
    15a4  add [rax],eax
    15a6  add [rax],eax
    15a8  add [rax],eax
    15aa  add [rax],eax
    15ac  add [rax],eax
    15ae  add [rax],eax
    15b0  add byte [rax-7F7F7F80h],80h
    15b7  add byte [rax-7F7F7F80h],80h
    15be  add byte [rax-7F7F7F80h],80h
    15c5  add byte [rax-7F7F7F80h],80h
    15cc  add byte [rax+8080h],40h
    15d3  add [rax],al
    15d5  add [rax],al
    15d8  add [rax],al
    15da  add [rax],al
    15dd  add [rax],al
    15e0  add [rax],al
    15e2  add [rax],al
    15e5  add [rax],al
    15e8  add [rax],al
    15ea  add [rax],al
    15ed  add [rax],al
    15f0  add [rax],al
    15f2  add [rdi],bh
    15f4  add [rax],al
    15f6  add [rdi],bh
    15f8  add [rax],al
    15fa  add [rdi],bh
    15fc  add [rax],al
    15fe  add [rdi],bh
    1600  add [rax],al
    1602  add [rdi],bh
    1604  add [rax],al
    1606  add [rdi],bh
    1608  add [rax],al
    160a  add [rdi],bh
    160c  add [rax],al
    160e  add [rdi],bh
    1610  hlt
    1611  (bad)
    1613  push rsp
    1615  (bad)
    1617  push rsp
    1619  (bad)
    161b  push rsp
    161d  (bad)
    161f  push rsp
    1621  (bad)
    1623  push rsp
    1625  (bad)
    1627  push rsp
    1629  (bad)
    162b  push rsp
    162d  (bad)
    162f  inc dword [rax]
    1631  add [rax-35h],al
    1634  add [rax],al
    1636  retf
    1638  add [rax],al
    163a  retf
    163c  add [rax],al
    163e  retf
    1640  add [rax],al
    1642  retf
    1644  add [rax],al
    1646  retf
    1648  add [rax],al
    164a  retf
    164c  add [rax],al
    164e  retf

dot_bf16_f32_k64_t1:
    1680  push rbx
    1681  mov rbx,[rsi]
    1684  vpxor ymm7,ymm7,ymm7
    1688  vpxor ymm8,ymm8,ymm8
    168d  vpxor ymm9,ymm9,ymm9
    1692  vpxor ymm10,ymm10,ymm10
    1697  vpxor ymm11,ymm11,ymm11
    169c  vpxor ymm12,ymm12,ymm12
    16a1  vpxor ymm13,ymm13,ymm13
    16a6  vpxor ymm14,ymm14,ymm14
    16ab  mov r8,rdi
    16ae  lea r9,[rdi]
    16b1  xor r10,r10
    16b4  vmovups ymm1,[r9]
    16b9  vpslld ymm1,ymm1,10h
    16be  vmovups ymm2,[r9+20h]
    16c4  vpslld ymm2,ymm2,10h
    16c9  vbroadcastss ymm4,[rbx+r10]
    16cf  vfmadd231ps ymm7,ymm1,ymm4
    16d4  vfmadd231ps ymm11,ymm2,ymm4
    16d9  vmovups ymm1,[r9]
    16de  vpand ymm1,ymm1,[rel 17A3h]
    16e6  vmovups ymm2,[r9+20h]
    16ec  vpand ymm2,ymm2,[rel 17A3h]
    16f4  vbroadcastss ymm4,[rbx+r10+4]
    16fb  vfmadd231ps ymm8,ymm1,ymm4
    1700  vfmadd231ps ymm12,ymm2,ymm4
    1705  vmovups ymm1,[r9+40h]
    170b  vpslld ymm1,ymm1,10h
    1710  vmovups ymm2,[r9+60h]
    1716  vpslld ymm2,ymm2,10h
    171b  vbroadcastss ymm4,[rbx+r10+8]
    1722  vfmadd231ps ymm9,ymm1,ymm4
    1727  vfmadd231ps ymm13,ymm2,ymm4
    172c  vmovups ymm1,[r9+40h]
    1732  vpand ymm1,ymm1,[rel 17A3h]
    173a  vmovups ymm2,[r9+60h]
    1740  vpand ymm2,ymm2,[rel 17A3h]
    1748  vbroadcastss ymm4,[rbx+r10+0Ch]
    174f  vfmadd231ps ymm10,ymm1,ymm4
    1754  vfmadd231ps ymm14,ymm2,ymm4
    1759  add r9,80h
    1760  add r10,10h
    1764  cmp r10,100h
    176b  jne near 00000000000016B4h
    1771  mov rax,rdx
    1774  vaddps ymm7,ymm7,ymm8
    1779  vaddps ymm9,ymm9,ymm10
    177e  vaddps ymm7,ymm7,ymm9
    1783  vmovups [rax],ymm7
    1787  vaddps ymm11,ymm11,ymm12
    178c  vaddps ymm13,ymm13,ymm14
    1791  vaddps ymm11,ymm11,ymm13
    1796  vmovups [rax+20h],ymm11
    179b  add rax,rcx
    179e  vzeroupper
    17a1  pop rbx
    17a2  ret
    17a3  add [rax],al
    17a5  (bad)
    17a7  add [rax],al
    17a9  (bad)
    17ab  add [rax],al
    17ad  (bad)
    17af  add [rax],al
    17b1  (bad)
    17b3  add [rax],al
    17b5  (bad)
    17b7  add [rax],al
    17b9  (bad)
    17bb  add [rax],al
    17bd  (bad)
    17bf  add [rax],al
    17c1  (bad)

dot_int4_f32_k64_t1:
    1800  push rbx
    1801  mov rbx,[rsi]
    1804  lea r11,[rel 20F9h]
    180b  vpxor ymm7,ymm7,ymm7
    180f  vpxor ymm8,ymm8,ymm8
    1814  vpxor ymm9,ymm9,ymm9
    1819  vpxor ymm10,ymm10,ymm10
    181e  vpxor ymm11,ymm11,ymm11
    1823  vpxor ymm12,ymm12,ymm12
    1828  vpxor ymm13,ymm13,ymm13
    182d  vpxor ymm14,ymm14,ymm14
    1832  mov r8,rdi
    1835  lea r9,[rdi+40h]
    1839  xor r10,r10
    183c  vcvtph2ps ymm5,[r8]
    1841  vcvtph2ps ymm6,[r8+10h]
    1847  vmovdqu ymm1,[r9]
    184c  vpsrlw ymm2,ymm1,4
    1851  vpand ymm1,ymm1,[r11]
    1856  vpand ymm2,ymm2,[r11]
    185b  vpsubb ymm1,ymm1,[rel 21F9h]
    1863  vpsubb ymm2,ymm2,[rel 21F9h]
    186b  vpslld ymm3,ymm1,18h
    1870  vpsrad ymm3,ymm3,18h
    1875  vcvtdq2ps ymm3,ymm3
    1879  vmulps ymm3,ymm3,ymm5
    187d  vbroadcastss ymm4,[rbx+r10]
    1883  vfmadd231ps ymm7,ymm3,ymm4
    1888  vpslld ymm3,ymm1,10h
    188d  vpsrad ymm3,ymm3,18h
    1892  vcvtdq2ps ymm3,ymm3
    1896  vmulps ymm3,ymm3,ymm5
    189a  vbroadcastss ymm4,[rbx+r10+4]
    18a1  vfmadd231ps ymm8,ymm3,ymm4
    18a6  vpslld ymm3,ymm1,8
    18ab  vpsrad ymm3,ymm3,18h
    18b0  vcvtdq2ps ymm3,ymm3
    18b4  vmulps ymm3,ymm3,ymm5
    18b8  vbroadcastss ymm4,[rbx+r10+8]
    18bf  vfmadd231ps ymm9,ymm3,ymm4
    18c4  vpsrad ymm3,ymm1,18h
    18c9  vcvtdq2ps ymm3,ymm3
    18cd  vmulps ymm3,ymm3,ymm5
    18d1  vbroadcastss ymm4,[rbx+r10+0Ch]
    18d8  vfmadd231ps ymm10,ymm3,ymm4
    18dd  vpslld ymm3,ymm2,18h
    18e2  vpsrad ymm3,ymm3,18h
    18e7  vcvtdq2ps ymm3,ymm3
    18eb  vmulps ymm3,ymm3,ymm5
    18ef  vbroadcastss ymm4,[rbx+r10+10h]
    18f6  vfmadd231ps ymm7,ymm3,ymm4
    18fb  vpslld ymm3,ymm2,10h
    1900  vpsrad ymm3,ymm3,18h
    1905  vcvtdq2ps ymm3,ymm3
    1909  vmulps ymm3,ymm3,ymm5
    190d  vbroadcastss ymm4,[rbx+r10+14h]
    1914  vfmadd231ps ymm8,ymm3,ymm4
    1919  vpslld ymm3,ymm2,8
    191e  vpsrad ymm3,ymm3,18h
    1923  vcvtdq2ps ymm3,ymm3
    1927  vmulps ymm3,ymm3,ymm5
    192b  vbroadcastss ymm4,[rbx+r10+18h]
    1932  vfmadd231ps ymm9,ymm3,ymm4
    1937  vpsrad ymm3,ymm2,18h
    193c  vcvtdq2ps ymm3,ymm3
    1940  vmulps ymm3,ymm3,ymm5
    1944  vbroadcastss ymm4,[rbx+r10+1Ch]
    194b  vfmadd231ps ymm10,ymm3,ymm4
    1950  vmovdqu ymm1,[r9+20h]
    1956  vpsrlw ymm2,ymm1,4
    195b  vpand ymm1,ymm1,[r11]
    1960  vpand ymm2,ymm2,[r11]
    1965  vpsubb ymm1,ymm1,[rel 21F9h]
    196d  vpsubb ymm2,ymm2,[rel 21F9h]
    1975  vpslld ymm3,ymm1,18h
    197a  vpsrad ymm3,ymm3,18h
    197f  vcvtdq2ps ymm3,ymm3
    1983  vmulps ymm3,ymm3,ymm6
    1987  vbroadcastss ymm4,[rbx+r10]
    198d  vfmadd231ps ymm11,ymm3,ymm4
    1992  vpslld ymm3,ymm1,10h
    1997  vpsrad ymm3,ymm3,18h
    199c  vcvtdq2ps ymm3,ymm3
    19a0  vmulps ymm3,ymm3,ymm6
    19a4  vbroadcastss ymm4,[rbx+r10+4]
    19ab  vfmadd231ps ymm12,ymm3,ymm4
    19b0  vpslld ymm3,ymm1,8
    19b5  vpsrad ymm3,ymm3,18h
    19ba  vcvtdq2ps ymm3,ymm3
    19be  vmulps ymm3,ymm3,ymm6
    19c2  vbroadcastss ymm4,[rbx+r10+8]
    19c9  vfmadd231ps ymm13,ymm3,ymm4
    19ce  vpsrad ymm3,ymm1,18h
    19d3  vcvtdq2ps ymm3,ymm3
    19d7  vmulps ymm3,ymm3,ymm6
    19db  vbroadcastss ymm4,[rbx+r10+0Ch]
    19e2  vfmadd231ps ymm14,ymm3,ymm4
    19e7  vpslld ymm3,ymm2,18h
    19ec  vpsrad ymm3,ymm3,18h
    19f1  vcvtdq2ps ymm3,ymm3
    19f5  vmulps ymm3,ymm3,ymm6
    19f9  vbroadcastss ymm4,[rbx+r10+10h]
    1a00  vfmadd231ps ymm11,ymm3,ymm4
    1a05  vpslld ymm3,ymm2,10h
    1a0a  vpsrad ymm3,ymm3,18h
    1a0f  vcvtdq2ps ymm3,ymm3
    1a13  vmulps ymm3,ymm3,ymm6
    1a17  vbroadcastss ymm4,[rbx+r10+14h]
    1a1e  vfmadd231ps ymm12,ymm3,ymm4
    1a23  vpslld ymm3,ymm2,8
    1a28  vpsrad ymm3,ymm3,18h
    1a2d  vcvtdq2ps ymm3,ymm3
    1a31  vmulps ymm3,ymm3,ymm6
    1a35  vbroadcastss ymm4,[rbx+r10+18h]
    1a3c  vfmadd231ps ymm13,ymm3,ymm4
    1a41  vpsrad ymm3,ymm2,18h
    1a46  vcvtdq2ps ymm3,ymm3
    1a4a  vmulps ymm3,ymm3,ymm6
    1a4e  vbroadcastss ymm4,[rbx+r10+1Ch]
    1a55  vfmadd231ps ymm14,ymm3,ymm4
    1a5a  vmovdqu ymm1,[r9+40h]
    1a60  vpsrlw ymm2,ymm1,4
    1a65  vpand ymm1,ymm1,[r11]
    1a6a  vpand ymm2,ymm2,[r11]
    1a6f  vpsubb ymm1,ymm1,[rel 21F9h]
    1a77  vpsubb ymm2,ymm2,[rel 21F9h]
    1a7f  vpslld ymm3,ymm1,18h
    1a84  vpsrad ymm3,ymm3,18h
    1a89  vcvtdq2ps ymm3,ymm3
    1a8d  vmulps ymm3,ymm3,ymm5
    1a91  vbroadcastss ymm4,[rbx+r10+20h]
    1a98  vfmadd231ps ymm7,ymm3,ymm4
    1a9d  vpslld ymm3,ymm1,10h
    1aa2  vpsrad ymm3,ymm3,18h
    1aa7  vcvtdq2ps ymm3,ymm3
    1aab  vmulps ymm3,ymm3,ymm5
    1aaf  vbroadcastss ymm4,[rbx+r10+24h]
    1ab6  vfmadd231ps ymm8,ymm3,ymm4
    1abb  vpslld ymm3,ymm1,8
    1ac0  vpsrad ymm3,ymm3,18h
    1ac5  vcvtdq2ps ymm3,ymm3
    1ac9  vmulps ymm3,ymm3,ymm5
    1acd  vbroadcastss ymm4,[rbx+r10+28h]
    1ad4  vfmadd231ps ymm9,ymm3,ymm4
    1ad9  vpsrad ymm3,ymm1,18h
    1ade  vcvtdq2ps ymm3,ymm3
    1ae2  vmulps ymm3,ymm3,ymm5
    1ae6  vbroadcastss ymm4,[rbx+r10+2Ch]
    1aed  vfmadd231ps ymm10,ymm3,ymm4
    1af2  vpslld ymm3,ymm2,18h
    1af7  vpsrad ymm3,ymm3,18h
    1afc  vcvtdq2ps ymm3,ymm3
    1b00  vmulps ymm3,ymm3,ymm5
    1b04  vbroadcastss ymm4,[rbx+r10+30h]
    1b0b  vfmadd231ps ymm7,ymm3,ymm4
    1b10  vpslld ymm3,ymm2,10h
    1b15  vpsrad ymm3,ymm3,18h
    1b1a  vcvtdq2ps ymm3,ymm3
    1b1e  vmulps ymm3,ymm3,ymm5
    1b22  vbroadcastss ymm4,[rbx+r10+34h]
    1b29  vfmadd231ps ymm8,ymm3,ymm4
    1b2e  vpslld ymm3,ymm2,8
    1b33  vpsrad ymm3,ymm3,18h
    1b38  vcvtdq2ps ymm3,ymm3
    1b3c  vmulps ymm3,ymm3,ymm5
    1b40  vbroadcastss ymm4,[rbx+r10+38h]
    1b47  vfmadd231ps ymm9,ymm3,ymm4
    1b4c  vpsrad ymm3,ymm2,18h
    1b51  vcvtdq2ps ymm3,ymm3
    1b55  vmulps ymm3,ymm3,ymm5
    1b59  vbroadcastss ymm4,[rbx+r10+3Ch]
    1b60  vfmadd231ps ymm10,ymm3,ymm4
    1b65  vmovdqu ymm1,[r9+60h]
    1b6b  vpsrlw ymm2,ymm1,4
    1b70  vpand ymm1,ymm1,[r11]
    1b75  vpand ymm2,ymm2,[r11]
    1b7a  vpsubb ymm1,ymm1,[rel 21F9h]
    1b82  vpsubb ymm2,ymm2,[rel 21F9h]
    1b8a  vpslld ymm3,ymm1,18h
    1b8f  vpsrad ymm3,ymm3,18h
    1b94  vcvtdq2ps ymm3,ymm3
    1b98  vmulps ymm3,ymm3,ymm6
    1b9c  vbroadcastss ymm4,[rbx+r10+20h]
    1ba3  vfmadd231ps ymm11,ymm3,ymm4
    1ba8  vpslld ymm3,ymm1,10h
    1bad  vpsrad ymm3,ymm3,18h
    1bb2  vcvtdq2ps ymm3,ymm3
    1bb6  vmulps ymm3,ymm3,ymm6
    1bba  vbroadcastss ymm4,[rbx+r10+24h]
    1bc1  vfmadd231ps ymm12,ymm3,ymm4
    1bc6  vpslld ymm3,ymm1,8
    1bcb  vpsrad ymm3,ymm3,18h
    1bd0  vcvtdq2ps ymm3,ymm3
    1bd4  vmulps ymm3,ymm3,ymm6
    1bd8  vbroadcastss ymm4,[rbx+r10+28h]
    1bdf  vfmadd231ps ymm13,ymm3,ymm4
    1be4  vpsrad ymm3,ymm1,18h
    1be9  vcvtdq2ps ymm3,ymm3
    1bed  vmulps ymm3,ymm3,ymm6
    1bf1  vbroadcastss ymm4,[rbx+r10+2Ch]
    1bf8  vfmadd231ps ymm14,ymm3,ymm4
    1bfd  vpslld ymm3,ymm2,18h
    1c02  vpsrad ymm3,ymm3,18h
    1c07  vcvtdq2ps ymm3,ymm3
    1c0b  vmulps ymm3,ymm3,ymm6
    1c0f  vbroadcastss ymm4,[rbx+r10+30h]
    1c16  vfmadd231ps ymm11,ymm3,ymm4
    1c1b  vpslld ymm3,ymm2,10h
    1c20  vpsrad ymm3,ymm3,18h
    1c25  vcvtdq2ps ymm3,ymm3
    1c29  vmulps ymm3,ymm3,ymm6
    1c2d  vbroadcastss ymm4,[rbx+r10+34h]
    1c34  vfmadd231ps ymm12,ymm3,ymm4
    1c39  vpslld ymm3,ymm2,8
    1c3e  vpsrad ymm3,ymm3,18h
    1c43  vcvtdq2ps ymm3,ymm3
    1c47  vmulps ymm3,ymm3,ymm6
    1c4b  vbroadcastss ymm4,[rbx+r10+38h]
    1c52  vfmadd231ps ymm13,ymm3,ymm4
    1c57  vpsrad ymm3,ymm2,18h
    1c5c  vcvtdq2ps ymm3,ymm3
    1c60  vmulps ymm3,ymm3,ymm6
    1c64  vbroadcastss ymm4,[rbx+r10+3Ch]
    1c6b  vfmadd231ps ymm14,ymm3,ymm4
    1c70  vmovdqu ymm1,[r9+80h]
    1c79  vpsrlw ymm2,ymm1,4
    1c7e  vpand ymm1,ymm1,[r11]
    1c83  vpand ymm2,ymm2,[r11]
    1c88  vpsubb ymm1,ymm1,[rel 21F9h]
    1c90  vpsubb ymm2,ymm2,[rel 21F9h]
    1c98  vpslld ymm3,ymm1,18h
    1c9d  vpsrad ymm3,ymm3,18h
    1ca2  vcvtdq2ps ymm3,ymm3
    1ca6  vmulps ymm3,ymm3,ymm5
    1caa  vbroadcastss ymm4,[rbx+r10+40h]
    1cb1  vfmadd231ps ymm7,ymm3,ymm4
    1cb6  vpslld ymm3,ymm1,10h
    1cbb  vpsrad ymm3,ymm3,18h
    1cc0  vcvtdq2ps ymm3,ymm3
    1cc4  vmulps ymm3,ymm3,ymm5
    1cc8  vbroadcastss ymm4,[rbx+r10+44h]
    1ccf  vfmadd231ps ymm8,ymm3,ymm4
    1cd4  vpslld ymm3,ymm1,8
    1cd9  vpsrad ymm3,ymm3,18h
    1cde  vcvtdq2ps ymm3,ymm3
    1ce2  vmulps ymm3,ymm3,ymm5
    1ce6  vbroadcastss ymm4,[rbx+r10+48h]
    1ced  vfmadd231ps ymm9,ymm3,ymm4
    1cf2  vpsrad ymm3,ymm1,18h
    1cf7  vcvtdq2ps ymm3,ymm3
    1cfb  vmulps ymm3,ymm3,ymm5
    1cff  vbroadcastss ymm4,[rbx+r10+4Ch]
    1d06  vfmadd231ps ymm10,ymm3,ymm4
    1d0b  vpslld ymm3,ymm2,18h
    1d10  vpsrad ymm3,ymm3,18h
    1d15  vcvtdq2ps ymm3,ymm3
    1d19  vmulps ymm3,ymm3,ymm5
    1d1d  vbroadcastss ymm4,[rbx+r10+50h]
    1d24  vfmadd231ps ymm7,ymm3,ymm4
    1d29  vpslld ymm3,ymm2,10h
    1d2e  vpsrad ymm3,ymm3,18h
    1d33  vcvtdq2ps ymm3,ymm3
    1d37  vmulps ymm3,ymm3,ymm5
    1d3b  vbroadcastss ymm4,[rbx+r10+54h]
    1d42  vfmadd231ps ymm8,ymm3,ymm4
    1d47  vpslld ymm3,ymm2,8
    1d4c  vpsrad ymm3,ymm3,18h
    1d51  vcvtdq2ps ymm3,ymm3
    1d55  vmulps ymm3,ymm3,ymm5
    1d59  vbroadcastss ymm4,[rbx+r10+58h]
    1d60  vfmadd231ps ymm9,ymm3,ymm4
    1d65  vpsrad ymm3,ymm2,18h
    1d6a  vcvtdq2ps ymm3,ymm3
    1d6e  vmulps ymm3,ymm3,ymm5
    1d72  vbroadcastss ymm4,[rbx+r10+5Ch]
    1d79  vfmadd231ps ymm10,ymm3,ymm4
    1d7e  vmovdqu ymm1,[r9+0A0h]
    1d87  vpsrlw ymm2,ymm1,4
    1d8c  vpand ymm1,ymm1,[r11]
    1d91  vpand ymm2,ymm2,[r11]
    1d96  vpsubb ymm1,ymm1,[rel 21F9h]
    1d9e  vpsubb ymm2,ymm2,[rel 21F9h]
    1da6  vpslld ymm3,ymm1,18h
    1dab  vpsrad ymm3,ymm3,18h
    1db0  vcvtdq2ps ymm3,ymm3
    1db4  vmulps ymm3,ymm3,ymm6
    1db8  vbroadcastss ymm4,[rbx+r10+40h]
    1dbf  vfmadd231ps ymm11,ymm3,ymm4
    1dc4  vpslld ymm3,ymm1,10h
    1dc9  vpsrad ymm3,ymm3,18h
    1dce  vcvtdq2ps ymm3,ymm3
    1dd2  vmulps ymm3,ymm3,ymm6
    1dd6  vbroadcastss ymm4,[rbx+r10+44h]
    1ddd  vfmadd231ps ymm12,ymm3,ymm4
    1de2  vpslld ymm3,ymm1,8
    1de7  vpsrad ymm3,ymm3,18h
    1dec  vcvtdq2ps ymm3,ymm3
    1df0  vmulps ymm3,ymm3,ymm6
    1df4  vbroadcastss ymm4,[rbx+r10+48h]
    1dfb  vfmadd231ps ymm13,ymm3,ymm4
    1e00  vpsrad ymm3,ymm1,18h
    1e05  vcvtdq2ps ymm3,ymm3
    1e09  vmulps ymm3,ymm3,ymm6
    1e0d  vbroadcastss ymm4,[rbx+r10+4Ch]
    1e14  vfmadd231ps ymm14,ymm3,ymm4
    1e19  vpslld ymm3,ymm2,18h
    1e1e  vpsrad ymm3,ymm3,18h
    1e23  vcvtdq2ps ymm3,ymm3
    1e27  vmulps ymm3,ymm3,ymm6
    1e2b  vbroadcastss ymm4,[rbx+r10+50h]
    1e32  vfmadd231ps ymm11,ymm3,ymm4
    1e37  vpslld ymm3,ymm2,10h
    1e3c  vpsrad ymm3,ymm3,18h
    1e41  vcvtdq2ps ymm3,ymm3
    1e45  vmulps ymm3,ymm3,ymm6
    1e49  vbroadcastss ymm4,[rbx+r10+54h]
    1e50  vfmadd231ps ymm12,ymm3,ymm4
    1e55  vpslld ymm3,ymm2,8
    1e5a  vpsrad ymm3,ymm3,18h
    1e5f  vcvtdq2ps ymm3,ymm3
    1e63  vmulps ymm3,ymm3,ymm6
    1e67  vbroadcastss ymm4,[rbx+r10+58h]
    1e6e  vfmadd231ps ymm13,ymm3,ymm4
    1e73  vpsrad ymm3,ymm2,18h
    1e78  vcvtdq2ps ymm3,ymm3
    1e7c  vmulps ymm3,ymm3,ymm6
    1e80  vbroadcastss ymm4,[rbx+r10+5Ch]
    1e87  vfmadd231ps ymm14,ymm3,ymm4
    1e8c  vmovdqu ymm1,[r9+0C0h]
    1e95  vpsrlw ymm2,ymm1,4
    1e9a  vpand ymm1,ymm1,[r11]
    1e9f  vpand ymm2,ymm2,[r11]
    1ea4  vpsubb ymm1,ymm1,[rel 21F9h]
    1eac  vpsubb ymm2,ymm2,[rel 21F9h]
    1eb4  vpslld ymm3,ymm1,18h
    1eb9  vpsrad ymm3,ymm3,18h
    1ebe  vcvtdq2ps ymm3,ymm3
    1ec2  vmulps ymm3,ymm3,ymm5
    1ec6  vbroadcastss ymm4,[rbx+r10+60h]
    1ecd  vfmadd231ps ymm7,ymm3,ymm4
    1ed2  vpslld ymm3,ymm1,10h
    1ed7  vpsrad ymm3,ymm3,18h
    1edc  vcvtdq2ps ymm3,ymm3
    1ee0  vmulps ymm3,ymm3,ymm5
    1ee4  vbroadcastss ymm4,[rbx+r10+64h]
    1eeb  vfmadd231ps ymm8,ymm3,ymm4
    1ef0  vpslld ymm3,ymm1,8
    1ef5  vpsrad ymm3,ymm3,18h
    1efa  vcvtdq2ps ymm3,ymm3
    1efe  vmulps ymm3,ymm3,ymm5
    1f02  vbroadcastss ymm4,[rbx+r10+68h]
    1f09  vfmadd231ps ymm9,ymm3,ymm4
    1f0e  vpsrad ymm3,ymm1,18h
    1f13  vcvtdq2ps ymm3,ymm3
    1f17  vmulps ymm3,ymm3,ymm5
    1f1b  vbroadcastss ymm4,[rbx+r10+6Ch]
    1f22  vfmadd231ps ymm10,ymm3,ymm4
    1f27  vpslld ymm3,ymm2,18h
    1f2c  vpsrad ymm3,ymm3,18h
    1f31  vcvtdq2ps ymm3,ymm3
    1f35  vmulps ymm3,ymm3,ymm5
    1f39  vbroadcastss ymm4,[rbx+r10+70h]
    1f40  vfmadd231ps ymm7,ymm3,ymm4
    1f45  vpslld ymm3,ymm2,10h
    1f4a  vpsrad ymm3,ymm3,18h
    1f4f  vcvtdq2ps ymm3,ymm3
    1f53  vmulps ymm3,ymm3,ymm5
    1f57  vbroadcastss ymm4,[rbx+r10+74h]
    1f5e  vfmadd231ps ymm8,ymm3,ymm4
    1f63  vpslld ymm3,ymm2,8
    1f68  vpsrad ymm3,ymm3,18h
    1f6d  vcvtdq2ps ymm3,ymm3
    1f71  vmulps ymm3,ymm3,ymm5
    1f75  vbroadcastss ymm4,[rbx+r10+78h]
    1f7c  vfmadd231ps ymm9,ymm3,ymm4
    1f81  vpsrad ymm3,ymm2,18h
    1f86  vcvtdq2ps ymm3,ymm3
    1f8a  vmulps ymm3,ymm3,ymm5
    1f8e  vbroadcastss ymm4,[rbx+r10+7Ch]
    1f95  vfmadd231ps ymm10,ymm3,ymm4
    1f9a  vmovdqu ymm1,[r9+0E0h]
    1fa3  vpsrlw ymm2,ymm1,4
    1fa8  vpand ymm1,ymm1,[r11]
    1fad  vpand ymm2,ymm2,[r11]
    1fb2  vpsubb ymm1,ymm1,[rel 21F9h]
    1fba  vpsubb ymm2,ymm2,[rel 21F9h]
    1fc2  vpslld ymm3,ymm1,18h
    1fc7  vpsrad ymm3,ymm3,18h
    1fcc  vcvtdq2ps ymm3,ymm3
    1fd0  vmulps ymm3,ymm3,ymm6
    1fd4  vbroadcastss ymm4,[rbx+r10+60h]
    1fdb  vfmadd231ps ymm11,ymm3,ymm4
    1fe0  vpslld ymm3,ymm1,10h
    1fe5  vpsrad ymm3,ymm3,18h
    1fea  vcvtdq2ps ymm3,ymm3
    1fee  vmulps ymm3,ymm3,ymm6
    1ff2  vbroadcastss ymm4,[rbx+r10+64h]
    1ff9  vfmadd231ps ymm12,ymm3,ymm4
    1ffe  vpslld ymm3,ymm1,8
    2003  vpsrad ymm3,ymm3,18h
    2008  vcvtdq2ps ymm3,ymm3
    200c  vmulps ymm3,ymm3,ymm6
    2010  vbroadcastss ymm4,[rbx+r10+68h]
    2017  vfmadd231ps ymm13,ymm3,ymm4
    201c  vpsrad ymm3,ymm1,18h
    2021  vcvtdq2ps ymm3,ymm3
    2025  vmulps ymm3,ymm3,ymm6
    2029  vbroadcastss ymm4,[rbx+r10+6Ch]
    2030  vfmadd231ps ymm14,ymm3,ymm4
    2035  vpslld ymm3,ymm2,18h
    203a  vpsrad ymm3,ymm3,18h
    203f  vcvtdq2ps ymm3,ymm3
    2043  vmulps ymm3,ymm3,ymm6
    2047  vbroadcastss ymm4,[rbx+r10+70h]
    204e  vfmadd231ps ymm11,ymm3,ymm4
    2053  vpslld ymm3,ymm2,10h
    2058  vpsrad ymm3,ymm3,18h
    205d  vcvtdq2ps ymm3,ymm3
    2061  vmulps ymm3,ymm3,ymm6
    2065  vbroadcastss ymm4,[rbx+r10+74h]
    206c  vfmadd231ps ymm12,ymm3,ymm4
    2071  vpslld ymm3,ymm2,8
    2076  vpsrad ymm3,ymm3,18h
    207b  vcvtdq2ps ymm3,ymm3
    207f  vmulps ymm3,ymm3,ymm6
    2083  vbroadcastss ymm4,[rbx+r10+78h]
    208a  vfmadd231ps ymm13,ymm3,ymm4
    208f  vpsrad ymm3,ymm2,18h
    2094  vcvtdq2ps ymm3,ymm3
    2098  vmulps ymm3,ymm3,ymm6
    209c  vbroadcastss ymm4,[rbx+r10+7Ch]
    20a3  vfmadd231ps ymm14,ymm3,ymm4
    20a8  add r8,20h
    20ac  add r9,100h
    20b3  add r10,80h
    20ba  cmp r10,100h
    20c1  jne near 000000000000183Ch
    20c7  mov rax,rdx
    20ca  vaddps ymm7,ymm7,ymm8
    20cf  vaddps ymm9,ymm9,ymm10
    20d4  vaddps ymm7,ymm7,ymm9
    20d9  vmovups [rax],ymm7
    20dd  vaddps ymm11,ymm11,ymm12
    20e2  vaddps ymm13,ymm13,ymm14
    20e7  vaddps ymm11,ymm11,ymm13
    20ec  vmovups [rax+20h],ymm11
    20f1  add rax,rcx
    20f4  vzeroupper
    20f7  pop rbx
    20f8  ret
    20f9  (bad)
    20fd  (bad)
    2101  (bad)
    2105  (bad)
    2109  (bad)
    210d  (bad)
    2111  (bad)
    2115  (bad)
    2119  or al,0Dh
    211b  (bad)
    211d  adc [rdx],dl
    211f  adc al,18h
    2121  or al,0Bh
    2123  or cl,[rcx]
    2125  or [rsi],al
    2127  add al,0
    2129  or al,0Dh
    212b  (bad)
    212d  adc [rdx],dl
    212f  adc al,18h
    2131  or al,0Bh
    2133  or cl,[rcx]
    2135  or [rsi],al
    2137  add al,0
    2139  add [rax],eax
    213b  add [rax],eax
    213d  add [rax],eax
    213f  add [rax],eax
    2141  add [rax],eax
    2143  add [rax],eax
    2145  add [rax],eax
    2147  add [rax],eax
    2149  add [rax],eax
    214b  add [rax],eax
    214d  add [rax],eax
    214f  add [rax],eax
    2151  add [rax],eax
    2153  add [rax],eax
    2155  add [rax],eax
    2157  add [rax],eax
    2159  add byte [rax-7F7F7F80h],80h
    2160  add byte [rax-7F7F7F80h],80h
    2167  add byte [rax-7F7F7F80h],80h
    216e  add byte [rax-7F7F7F80h],80h
    2175  add byte [rax+8080h],40h
    217c  add [rax],al
    217e  add [rax],al
    2181  add [rax],al
    2183  add [rax],al
    2186  add [rax],al
    2189  add [rax],al
    218b  add [rax],al
    218e  add [rax],al
    2191  add [rax],al
    2193  add [rax],al
    2196  add [rax],al
    2199  add [rax],al
    219b  add [rdi],bh
    219d  add [rax],al
    219f  add [rdi],bh
    21a1  add [rax],al
    21a3  add [rdi],bh
    21a5  add [rax],al
    21a7  add [rdi],bh
    21a9  add [rax],al
    21ab  add [rdi],bh
    21ad  add [rax],al
    21af  add [rdi],bh
    21b1  add [rax],al
    21b3  add [rdi],bh
    21b5  add [rax],al
    21b7  add [rdi],bh
    21b9  clc
    21ba  (bad)
    21bc  (bad)
    21be  (bad)
    21c0  (bad)
    21c2  (bad)
    21c4  (bad)
    21c6  (bad)
    21c8  (bad)
    21ca  (bad)
    21cc  (bad)
    21ce  (bad)
    21d0  (bad)
    21d2  (bad)
    21d4  (bad)
    21d6  (bad)
    21d8  inc dword [rax]
    21da  add [rax-35h],al
    21dd  add [rax],al
    21df  retf
    21e1  add [rax],al
    21e3  retf
    21e5  add [rax],al
    21e7  retf
    21e9  add [rax],al
    21eb  retf
    21ed  add [rax],al
    21ef  retf
    21f1  add [rax],al
    21f3  retf
    21f5  add [rax],al
    21f7  retf
    21f9  or [rax],cl
    21fb  or [rax],cl
    21fd  or [rax],cl
    21ff  or [rax],cl
    2201  or [rax],cl
    2203  or [rax],cl
    2205  or [rax],cl
    2207  or [rax],cl
    2209  or [rax],cl
    220b  or [rax],cl
    220d  or [rax],cl
    220f  or [rax],cl
    2211  or [rax],cl
    2213  or [rax],cl
    2215  or [rax],cl
    2217  or [rax],cl

score_F16_d32_g2_s3e000000:
    2240  cmp rcx,1
    2244  jl near 0000000000002437h
    224a  mov r8,[rdi]
    224d  mov r9,[rdi+40h]
    2251  vpxor ymm3,ymm3,ymm3
    2255  vpxor ymm4,ymm4,ymm4
    2259  vpxor ymm5,ymm5,ymm5
    225d  vpxor ymm6,ymm6,ymm6
    2261  vpxor ymm7,ymm7,ymm7
    2265  vpxor ymm8,ymm8,ymm8
    226a  vpxor ymm9,ymm9,ymm9
    226f  vpxor ymm10,ymm10,ymm10
    2274  xor r10,r10
    2277  xor r11,r11
    227a  prefetcht1 [r9+r10]
    227f  prefetcht1 [r9+r10+40h]
    2285  vcvtph2ps ymm0,[r8+r10]
    228b  vcvtph2ps ymm1,[r8+r10+10h]
    2292  vbroadcastss ymm2,[rsi+r11]
    2298  vfmadd231ps ymm3,ymm0,ymm2
    229d  vfmadd231ps ymm4,ymm1,ymm2
    22a2  vbroadcastss ymm2,[rsi+r11+80h]
    22ac  vfmadd231ps ymm5,ymm0,ymm2
    22b1  vfmadd231ps ymm6,ymm1,ymm2
    22b6  vcvtph2ps ymm0,[r8+r10+20h]
    22bd  vcvtph2ps ymm1,[r8+r10+30h]
    22c4  vbroadcastss ymm2,[rsi+r11+4]
    22cb  vfmadd231ps ymm7,ymm0,ymm2
    22d0  vfmadd231ps ymm8,ymm1,ymm2
    22d5  vbroadcastss ymm2,[rsi+r11+84h]
    22df  vfmadd231ps ymm9,ymm0,ymm2
    22e4  vfmadd231ps ymm10,ymm1,ymm2
    22e9  add r10,80h
    22f0  add r11,10h
    22f4  cmp r11,80h
    22fb  jne near 000000000000227Ah
    2301  vaddps ymm11,ymm3,ymm7
    2305  vaddps ymm12,ymm4,ymm8
    230a  vaddps ymm13,ymm5,ymm9
    230f  vaddps ymm14,ymm6,ymm10
    2314  vpxor ymm3,ymm3,ymm3
    2318  vpxor ymm4,ymm4,ymm4
    231c  vpxor ymm5,ymm5,ymm5
    2320  vpxor ymm6,ymm6,ymm6
    2324  vpxor ymm7,ymm7,ymm7
    2328  vpxor ymm8,ymm8,ymm8
    232d  vpxor ymm9,ymm9,ymm9
    2332  vpxor ymm10,ymm10,ymm10
    2337  xor r10,r10
    233a  xor r11,r11
    233d  vcvtph2ps ymm0,[r8+r10+40h]
    2344  vcvtph2ps ymm1,[r8+r10+50h]
    234b  vbroadcastss ymm2,[rsi+r11+8]
    2352  vfmadd231ps ymm3,ymm0,ymm2
    2357  vfmadd231ps ymm4,ymm1,ymm2
    235c  vbroadcastss ymm2,[rsi+r11+88h]
    2366  vfmadd231ps ymm5,ymm0,ymm2
    236b  vfmadd231ps ymm6,ymm1,ymm2
    2370  vcvtph2ps ymm0,[r8+r10+60h]
    2377  vcvtph2ps ymm1,[r8+r10+70h]
    237e  vbroadcastss ymm2,[rsi+r11+0Ch]
    2385  vfmadd231ps ymm7,ymm0,ymm2
    238a  vfmadd231ps ymm8,ymm1,ymm2
    238f  vbroadcastss ymm2,[rsi+r11+8Ch]
    2399  vfmadd231ps ymm9,ymm0,ymm2
    239e  vfmadd231ps ymm10,ymm1,ymm2
    23a3  add r10,80h
    23aa  add r11,10h
    23ae  cmp r11,80h
    23b5  jne short 000000000000233Dh
    23b7  vaddps ymm3,ymm3,ymm7
    23bb  vaddps ymm3,ymm11,ymm3
    23bf  vbroadcastss ymm2,[rel 243Bh]
    23c8  vmulps ymm3,ymm3,ymm2
    23cc  vmovups [rdx],ymm3
    23d0  vaddps ymm4,ymm4,ymm8
    23d5  vaddps ymm4,ymm12,ymm4
    23d9  vbroadcastss ymm2,[rel 243Bh]
    23e2  vmulps ymm4,ymm4,ymm2
    23e6  vmovups [rdx+20h],ymm4
    23eb  vaddps ymm5,ymm5,ymm9
    23f0  vaddps ymm5,ymm13,ymm5
    23f4  vbroadcastss ymm2,[rel 243Bh]
    23fd  vmulps ymm5,ymm5,ymm2
    2401  vmovups [rdx+1040h],ymm5
    2409  vaddps ymm6,ymm6,ymm10
    240e  vaddps ymm6,ymm14,ymm6
    2412  vbroadcastss ymm2,[rel 243Bh]
    241b  vmulps ymm6,ymm6,ymm2
    241f  vmovups [rdx+1060h],ymm6
    2427  add rdi,8
    242b  add rdx,40h
    242f  dec rcx
    2432  jmp 0000000000002240h
    2437  vzeroupper
    243a  ret
    243b  add [rax],al
    243d  add [rsi],bh

value_F16_d32_g2:
    2440  push rbx
    2441  push rbp
    2442  push r12
    2444  push r13
    2446  cmp r8,r9
    2449  jge near 000000000000258Dh
    244f  vmovups ymm3,[rdx]
    2453  vmovups ymm4,[rdx+20h]
    2458  vmovups ymm5,[rdx+80h]
    2460  vmovups ymm6,[rdx+0A0h]
    2468  imul r13,r8,40h
    246c  mov rbx,r8
    246f  xor r12,r12
    2472  xor rbp,rbp
    2475  mov r10,[rdi+r12*8]
    2479  add r10,r13
    247c  xor r13,r13
    247f  mov r11,[rdi+r12*8+40h]
    2484  add rbp,10h
    2488  cmp rbp,r9
    248b  cmovg rbp,r9
    248f  prefetcht1 [r11]
    2493  add r11,40h
    2497  vcvtph2ps ymm1,[r10]
    249c  vcvtph2ps ymm2,[r10+10h]
    24a2  vbroadcastss ymm0,[rsi+rbx*4]
    24a8  vfmadd231ps ymm3,ymm1,ymm0
    24ad  vfmadd231ps ymm4,ymm2,ymm0
    24b2  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    24bc  vfmadd231ps ymm5,ymm1,ymm0
    24c1  vfmadd231ps ymm6,ymm2,ymm0
    24c6  add r10,40h
    24ca  inc rbx
    24cd  cmp rbx,rbp
    24d0  jl short 000000000000248Fh
    24d2  inc r12
    24d5  cmp r12,rcx
    24d8  jl short 0000000000002475h
    24da  vmovups [rdx],ymm3
    24de  vmovups [rdx+20h],ymm4
    24e3  vmovups [rdx+80h],ymm5
    24eb  vmovups [rdx+0A0h],ymm6
    24f3  vmovups ymm3,[rdx+40h]
    24f8  vmovups ymm4,[rdx+60h]
    24fd  vmovups ymm5,[rdx+0C0h]
    2505  vmovups ymm6,[rdx+0E0h]
    250d  imul r13,r8,40h
    2511  mov rbx,r8
    2514  xor r12,r12
    2517  xor rbp,rbp
    251a  mov r10,[rdi+r12*8]
    251e  add r10,r13
    2521  xor r13,r13
    2524  add rbp,10h
    2528  cmp rbp,r9
    252b  cmovg rbp,r9
    252f  vcvtph2ps ymm1,[r10+20h]
    2535  vcvtph2ps ymm2,[r10+30h]
    253b  vbroadcastss ymm0,[rsi+rbx*4]
    2541  vfmadd231ps ymm3,ymm1,ymm0
    2546  vfmadd231ps ymm4,ymm2,ymm0
    254b  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    2555  vfmadd231ps ymm5,ymm1,ymm0
    255a  vfmadd231ps ymm6,ymm2,ymm0
    255f  add r10,40h
    2563  inc rbx
    2566  cmp rbx,rbp
    2569  jl short 000000000000252Fh
    256b  inc r12
    256e  cmp r12,rcx
    2571  jl short 000000000000251Ah
    2573  vmovups [rdx+40h],ymm3
    2578  vmovups [rdx+60h],ymm4
    257d  vmovups [rdx+0C0h],ymm5
    2585  vmovups [rdx+0E0h],ymm6
    258d  vzeroupper
    2590  pop r13
    2592  pop r12
    2594  pop rbp
    2595  pop rbx
    2596  ret

softmax:
    25c0  push rbx
    25c1  cmp rsi,1
    25c5  jl near 000000000000284Eh
    25cb  lea r10,[rel 2853h]
    25d2  imul rbx,rsi,40h
    25d6  mov rax,rdx
    25d9  xor r11,r11
    25dc  vmovd xmm5,eax
    25e0  vpbroadcastd ymm5,xmm5
    25e5  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    25ee  vmovups ymm6,[rdi+r11]
    25f4  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    25fe  vmovups [rdi+r11],ymm6
    2604  vpcmpgtd ymm7,ymm5,[r10+200h]
    260d  vmovups ymm6,[rdi+r11+20h]
    2614  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    261e  vmovups [rdi+r11+20h],ymm6
    2625  imul r11,rsi,10h
    2629  mov rax,rcx
    262c  sub rax,r11
    262f  add rax,10h
    2635  mov r11,rbx
    2638  sub r11,40h
    263c  vmovd xmm5,eax
    2640  vpbroadcastd ymm5,xmm5
    2645  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    264e  vmovups ymm6,[r10+1C0h]
    2657  vblendvps ymm6,ymm6,[rdi+r11],ymm7
    265e  vmovups [rdi+r11],ymm6
    2664  vpcmpgtd ymm7,ymm5,[r10+200h]
    266d  vmovups ymm6,[r10+1C0h]
    2676  vblendvps ymm6,ymm6,[rdi+r11+20h],ymm7
    267e  vmovups [rdi+r11+20h],ymm6
    2685  vmovups ymm0,[r10+1C0h]
    268e  vmovups ymm1,[r10+1C0h]
    2697  xor r11,r11
    269a  vmovups ymm4,[rdi+r11]
    26a0  vmaxps ymm0,ymm4,ymm0
    26a4  vmovups ymm4,[rdi+r11+20h]
    26ab  vmaxps ymm1,ymm4,ymm1
    26af  add r11,40h
    26b3  cmp r11,rbx
    26b6  jl short 000000000000269Ah
    26b8  vmaxps ymm0,ymm1,ymm0
    26bc  vperm2f128 ymm4,ymm0,ymm0,1
    26c2  vmaxps ymm0,ymm4,ymm0
    26c6  vpshufd ymm4,ymm0,4Eh
    26cb  vmaxps ymm0,ymm4,ymm0
    26cf  vpshufd ymm4,ymm0,0B1h
    26d4  vmaxps ymm0,ymm4,ymm0
    26d8  vmovss [r8],xmm0
    26dd  vpxor ymm2,ymm2,ymm2
    26e1  vpxor ymm3,ymm3,ymm3
    26e5  xor r11,r11
    26e8  vmovups ymm4,[rdi+r11]
    26ee  vsubps ymm4,ymm4,ymm0
    26f2  vcmpltps ymm7,ymm4,[r10+0A0h]
    26fc  vminps ymm4,ymm4,[r10]
    2701  vmovups ymm5,[r10+20h]
    2707  vfmadd213ps ymm5,ymm4,[r10+40h]
    270d  vsubps ymm6,ymm5,[r10+40h]
    2713  vfmadd231ps ymm4,ymm6,[r10+60h]
    2719  vfmadd231ps ymm4,ymm6,[r10+80h]
    2722  vmovups ymm6,[r10+0C0h]
    272b  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    2734  vfmadd213ps ymm6,ymm4,[r10+100h]
    273d  vfmadd213ps ymm6,ymm4,[r10+120h]
    2746  vfmadd213ps ymm6,ymm4,[r10+140h]
    274f  vfmadd213ps ymm6,ymm4,[r10+160h]
    2758  vfmadd213ps ymm6,ymm4,[r10+180h]
    2761  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    276a  vpslld ymm5,ymm5,17h
    276f  vpaddd ymm6,ymm6,ymm5
    2773  vandnps ymm4,ymm7,ymm6
    2777  vmovups [rdi+r11],ymm4
    277d  vaddps ymm2,ymm2,ymm4
    2781  vmovups ymm4,[rdi+r11+20h]
    2788  vsubps ymm4,ymm4,ymm0
    278c  vcmpltps ymm7,ymm4,[r10+0A0h]
    2796  vminps ymm4,ymm4,[r10]
    279b  vmovups ymm5,[r10+20h]
    27a1  vfmadd213ps ymm5,ymm4,[r10+40h]
    27a7  vsubps ymm6,ymm5,[r10+40h]
    27ad  vfmadd231ps ymm4,ymm6,[r10+60h]
    27b3  vfmadd231ps ymm4,ymm6,[r10+80h]
    27bc  vmovups ymm6,[r10+0C0h]
    27c5  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    27ce  vfmadd213ps ymm6,ymm4,[r10+100h]
    27d7  vfmadd213ps ymm6,ymm4,[r10+120h]
    27e0  vfmadd213ps ymm6,ymm4,[r10+140h]
    27e9  vfmadd213ps ymm6,ymm4,[r10+160h]
    27f2  vfmadd213ps ymm6,ymm4,[r10+180h]
    27fb  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    2804  vpslld ymm5,ymm5,17h
    2809  vpaddd ymm6,ymm6,ymm5
    280d  vandnps ymm4,ymm7,ymm6
    2811  vmovups [rdi+r11+20h],ymm4
    2818  vaddps ymm3,ymm3,ymm4
    281c  add r11,40h
    2820  cmp r11,rbx
    2823  jl near 00000000000026E8h
    2829  vaddps ymm2,ymm2,ymm3
    282d  vperm2f128 ymm4,ymm2,ymm2,1
    2833  vaddps ymm2,ymm2,ymm4
    2837  vpshufd ymm4,ymm2,4Eh
    283c  vaddps ymm2,ymm2,ymm4
    2840  vpshufd ymm4,ymm2,0B1h
    2845  vaddps ymm2,ymm2,ymm4
    2849  vmovss [r9],xmm2
    284e  vzeroupper
    2851  pop rbx
    2852  ret
    2853  add [rax],al
    2855  mov al,42h
    2857  add [rax],al
    2859  mov al,42h
    285b  add [rax],al
    285d  mov al,42h
    285f  add [rax],al
    2861  mov al,42h
    2863  add [rax],al
    2865  mov al,42h
    2867  add [rax],al
    2869  mov al,42h
    286b  add [rax],al
    286d  mov al,42h
    286f  add [rax],al
    2871  mov al,42h
    2873  cmp ebp,[rdx-55C4C048h]
    2879  mov eax,0B8AA3B3Fh
    287e  (bad)
    2880  stosb
    2881  mov eax,0B8AA3B3Fh
    2886  (bad)
    2888  stosb
    2889  mov eax,0B8AA3B3Fh
    288e  (bad)
    2890  stosb
    2891  mov eax,4000003Fh
    2896  add [r8],al
    2899  add [r8],al
    289d  add [r8],al
    28a1  add [r8],al
    28a5  add [r8],al
    28a9  add [r8],al
    28ad  add [r8],al
    28b1  add [r10+31h],sil
    28b6  mov edi,0BF317200h
    28bb  add [rdx+31h],dh
    28be  mov edi,0BF317200h
    28c3  add [rdx+31h],dh
    28c6  mov edi,0BF317200h
    28cb  add [rdx+31h],dh
    28ce  mov edi,0BF317200h
    28d3  (bad)
    28d9  mov edi,0BFBE8EB5h
    28de  mov ch,8Eh
    28e0  mov esi,0BE8EB5BFh
    28e5  mov edi,0BFBE8EB5h
    28ea  mov ch,8Eh
    28ec  mov esi,0BE8EB5BFh
    28f1  mov edi,0AE0000B5h
    28f6  ret 0
    28f9  scasb
    28fa  ret 0
    28fd  scasb
    28fe  ret 0
    2901  scasb
    2902  ret 0
    2905  scasb
    2906  ret 0
    2909  scasb
    290a  ret 0
    290d  scasb
    290e  ret 0
    2911  scasb
    2912  ret 6967h
    2915  push rax
    2916  cmp [rdi+69h],esp
    2919  push rax
    291a  cmp [rdi+69h],esp
    291d  push rax
    291e  cmp [rdi+69h],esp
    2921  push rax
    2922  cmp [rdi+69h],esp
    2925  push rax
    2926  cmp [rdi+69h],esp
    2929  push rax
    292a  cmp [rdi+69h],esp
    292d  push rax
    292e  cmp [rdi+69h],esp
    2931  push rax
    2932  cmp esi,ecx
    2934  mov r15b,3Ah
    2937  (bad)
    2939  mov bh,3Ah
    293b  (bad)
    293d  mov bh,3Ah
    293f  (bad)
    2941  mov bh,3Ah
    2943  (bad)
    2945  mov bh,3Ah
    2947  (bad)
    2949  mov bh,3Ah
    294b  (bad)
    294d  mov bh,3Ah
    294f  (bad)
    2951  mov bh,3Ah
    2953  or [rcx-76F7C3F8h],cl
    2959  or [rax+rcx],bh
    295c  mov [rax],ecx
    295e  cmp al,8
    2960  mov [rax],ecx
    2962  cmp al,8
    2964  mov [rax],ecx
    2966  cmp al,8
    2968  mov [rax],ecx
    296a  cmp al,8
    296c  mov [rax],ecx
    296e  cmp al,8
    2970  mov [rax],ecx
    2972  cmp al,0C1h
    2974  test eax,0A9C13D2Ah
    2979  sub bh,[rel 3D2AD340h]
    297f  shr dword [rcx-563EC2D6h],2Ah
    2986  cmp eax,3D2AA9C1h
    298b  shr dword [rcx-563EC2D6h],2Ah
    2992  cmp eax,3E2AAAAAh
    2997  stosb
    2998  stosb
    2999  sub bh,[rsi]
    299b  stosb
    299c  stosb
    299d  sub bh,[rsi]
    299f  stosb
    29a0  stosb
    29a1  sub bh,[rsi]
    29a3  stosb
    29a4  stosb
    29a5  sub bh,[rsi]
    29a7  stosb
    29a8  stosb
    29a9  sub bh,[rsi]
    29ab  stosb
    29ac  stosb
    29ad  sub bh,[rsi]
    29af  stosb
    29b0  stosb
    29b1  sub bh,[rsi]
    29b3  add [rax],al
    29b5  add [rdi],bh
    29b7  add [rax],al
    29b9  add [rdi],bh
    29bb  add [rax],al
    29bd  add [rdi],bh
    29bf  add [rax],al
    29c1  add [rdi],bh
    29c3  add [rax],al
    29c5  add [rdi],bh
    29c7  add [rax],al
    29c9  add [rdi],bh
    29cb  add [rax],al
    29cd  add [rdi],bh
    29cf  add [rax],al
    29d1  add [rdi],bh
    29d3  add [rax],al
    29d5  cmp byte [rdi],0
    29d8  add [rax-7FFFFFC1h],al
    29de  (bad)
    29e0  add [rax-7FFFFFC1h],al
    29e6  (bad)
    29e8  add [rax-7FFFFFC1h],al
    29ee  (bad)
    29f0  add [rax-7FFFFFC1h],al
    29f6  (bad)
    29f8  add [rax-7FFFFFC1h],al
    29fe  (bad)
    2a00  add [rax-7FFFFFC1h],al
    2a06  (bad)
    2a08  add [rax-7FFFFFC1h],al
    2a0e  (bad)
    2a10  add [rax-7FFFFFC1h],al
    2a16  inc dword [rax]
    2a18  add [rax-7FFFFF01h],al
    2a1e  inc dword [rax]
    2a20  add [rax-7FFFFF01h],al
    2a26  inc dword [rax]
    2a28  add [rax-7FFFFF01h],al
    2a2e  inc dword [rax]
    2a30  add [rax+0FFh],al
    2a36  add [rcx],al
    2a38  add [rax],al
    2a3a  add [rdx],al
    2a3c  add [rax],al
    2a3e  add [rbx],al
    2a40  add [rax],al
    2a42  add [rax+rax],al
    2a45  add [rax],al
    2a47  add eax,6000000h
    2a4c  add [rax],al
    2a4e  add [rdi],al
    2a50  add [rax],al
    2a52  add [rax],cl
    2a54  add [rax],al
    2a56  add [rcx],cl
    2a58  add [rax],al
    2a5a  add [rdx],cl
    2a5c  add [rax],al
    2a5e  add [rbx],cl
    2a60  add [rax],al
    2a62  add [rax+rax],cl
    2a65  add [rax],al
    2a67  or eax,0E000000h
    2a6c  add [rax],al
    2a6e  add [rdi],cl
    2a70  add [rax],al
    2a72  (bad)

combine_d32_g1_sinks:
    2a80  push rbx
    2a81  push rbp
    2a82  lea rbp,[rel 2C55h]
    2a89  vbroadcastss ymm0,[rcx]
    2a8e  mov r10,r9
    2a91  xor rbx,rbx
    2a94  cmp r10,1
    2a98  jl short 0000000000002AADh
    2a9a  vbroadcastss ymm2,[rsi+rbx]
    2aa0  vmaxps ymm0,ymm2,ymm0
    2aa4  add rbx,4
    2aa8  dec r10
    2aab  jmp short 0000000000002A94h
    2aad  vpxor ymm4,ymm4,ymm4
    2ab1  vpxor ymm5,ymm5,ymm5
    2ab5  vpxor ymm6,ymm6,ymm6
    2ab9  vpxor ymm7,ymm7,ymm7
    2abd  vpxor ymm1,ymm1,ymm1
    2ac1  mov r10,r9
    2ac4  mov r11,rdi
    2ac7  xor rbx,rbx
    2aca  cmp r10,1
    2ace  jl near 0000000000002B97h
    2ad4  vbroadcastss ymm2,[rsi+rbx]
    2ada  vsubps ymm2,ymm2,ymm0
    2ade  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2ae7  vminps ymm2,ymm2,[rbp]
    2aec  vmovups ymm12,[rbp+20h]
    2af1  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2af7  vsubps ymm13,ymm12,[rbp+40h]
    2afc  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2b02  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2b0b  vmovups ymm13,[rbp+0C0h]
    2b13  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2b1c  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2b25  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2b2e  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2b37  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2b40  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2b49  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2b52  vpslld ymm12,ymm12,17h
    2b58  vpaddd ymm13,ymm13,ymm12
    2b5d  vandnps ymm2,ymm14,ymm13
    2b62  vbroadcastss ymm3,[rdx+rbx]
    2b68  vfmadd231ps ymm1,ymm2,ymm3
    2b6d  vfmadd231ps ymm4,ymm2,[r11]
    2b72  vfmadd231ps ymm5,ymm2,[r11+20h]
    2b78  vfmadd231ps ymm6,ymm2,[r11+40h]
    2b7e  vfmadd231ps ymm7,ymm2,[r11+60h]
    2b84  add rbx,4
    2b88  add r11,80h
    2b8f  dec r10
    2b92  jmp 0000000000002ACAh
    2b97  vbroadcastss ymm2,[rcx]
    2b9c  vsubps ymm2,ymm2,ymm0
    2ba0  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2ba9  vminps ymm2,ymm2,[rbp]
    2bae  vmovups ymm12,[rbp+20h]
    2bb3  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2bb9  vsubps ymm13,ymm12,[rbp+40h]
    2bbe  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2bc4  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2bcd  vmovups ymm13,[rbp+0C0h]
    2bd5  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2bde  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2be7  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2bf0  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2bf9  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2c02  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2c0b  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2c14  vpslld ymm12,ymm12,17h
    2c1a  vpaddd ymm13,ymm13,ymm12
    2c1f  vandnps ymm2,ymm14,ymm13
    2c24  vaddps ymm1,ymm1,ymm2
    2c28  vdivps ymm4,ymm4,ymm1
    2c2c  vmovups [r8],ymm4
    2c31  vdivps ymm5,ymm5,ymm1
    2c35  vmovups [r8+20h],ymm5
    2c3b  vdivps ymm6,ymm6,ymm1
    2c3f  vmovups [r8+40h],ymm6
    2c45  vdivps ymm7,ymm7,ymm1
    2c49  vmovups [r8+60h],ymm7
    2c4f  vzeroupper
    2c52  pop rbp
    2c53  pop rbx
    2c54  ret
    2c55  add [rax],al
    2c57  mov al,42h
    2c59  add [rax],al
    2c5b  mov al,42h
    2c5d  add [rax],al
    2c5f  mov al,42h
    2c61  add [rax],al
    2c63  mov al,42h
    2c65  add [rax],al
    2c67  mov al,42h
    2c69  add [rax],al
    2c6b  mov al,42h
    2c6d  add [rax],al
    2c6f  mov al,42h
    2c71  add [rax],al
    2c73  mov al,42h
    2c75  cmp ebp,[rdx-55C4C048h]
    2c7b  mov eax,0B8AA3B3Fh
    2c80  (bad)
    2c82  stosb
    2c83  mov eax,0B8AA3B3Fh
    2c88  (bad)
    2c8a  stosb
    2c8b  mov eax,0B8AA3B3Fh
    2c90  (bad)
    2c92  stosb
    2c93  mov eax,4000003Fh
    2c98  add [r8],al
    2c9b  add [r8],al
    2c9f  add [r8],al
    2ca3  add [r8],al
    2ca7  add [r8],al
    2cab  add [r8],al
    2caf  add [r8],al
    2cb3  add [r10+31h],sil
    2cb8  mov edi,0BF317200h
    2cbd  add [rdx+31h],dh
    2cc0  mov edi,0BF317200h
    2cc5  add [rdx+31h],dh
    2cc8  mov edi,0BF317200h
    2ccd  add [rdx+31h],dh
    2cd0  mov edi,0BF317200h
    2cd5  (bad)
    2cdb  mov edi,0BFBE8EB5h
    2ce0  mov ch,8Eh
    2ce2  mov esi,0BE8EB5BFh
    2ce7  mov edi,0BFBE8EB5h
    2cec  mov ch,8Eh
    2cee  mov esi,0BE8EB5BFh
    2cf3  mov edi,0AE0000B5h
    2cf8  ret 0
    2cfb  scasb
    2cfc  ret 0
    2cff  scasb
    2d00  ret 0
    2d03  scasb
    2d04  ret 0
    2d07  scasb
    2d08  ret 0
    2d0b  scasb
    2d0c  ret 0
    2d0f  scasb
    2d10  ret 0
    2d13  scasb
    2d14  ret 6967h
    2d17  push rax
    2d18  cmp [rdi+69h],esp
    2d1b  push rax
    2d1c  cmp [rdi+69h],esp
    2d1f  push rax
    2d20  cmp [rdi+69h],esp
    2d23  push rax
    2d24  cmp [rdi+69h],esp
    2d27  push rax
    2d28  cmp [rdi+69h],esp
    2d2b  push rax
    2d2c  cmp [rdi+69h],esp
    2d2f  push rax
    2d30  cmp [rdi+69h],esp
    2d33  push rax
    2d34  cmp esi,ecx
    2d36  mov r15b,3Ah
    2d39  (bad)
    2d3b  mov bh,3Ah
    2d3d  (bad)
    2d3f  mov bh,3Ah
    2d41  (bad)
    2d43  mov bh,3Ah
    2d45  (bad)
    2d47  mov bh,3Ah
    2d49  (bad)
    2d4b  mov bh,3Ah
    2d4d  (bad)
    2d4f  mov bh,3Ah
    2d51  (bad)
    2d53  mov bh,3Ah
    2d55  or [rcx-76F7C3F8h],cl
    2d5b  or [rax+rcx],bh
    2d5e  mov [rax],ecx
    2d60  cmp al,8
    2d62  mov [rax],ecx
    2d64  cmp al,8
    2d66  mov [rax],ecx
    2d68  cmp al,8
    2d6a  mov [rax],ecx
    2d6c  cmp al,8
    2d6e  mov [rax],ecx
    2d70  cmp al,8
    2d72  mov [rax],ecx
    2d74  cmp al,0C1h
    2d76  test eax,0A9C13D2Ah
    2d7b  sub bh,[rel 3D2AD742h]
    2d81  shr dword [rcx-563EC2D6h],2Ah
    2d88  cmp eax,3D2AA9C1h
    2d8d  shr dword [rcx-563EC2D6h],2Ah
    2d94  cmp eax,3E2AAAAAh
    2d99  stosb
    2d9a  stosb
    2d9b  sub bh,[rsi]
    2d9d  stosb
    2d9e  stosb
    2d9f  sub bh,[rsi]
    2da1  stosb
    2da2  stosb
    2da3  sub bh,[rsi]
    2da5  stosb
    2da6  stosb
    2da7  sub bh,[rsi]
    2da9  stosb
    2daa  stosb
    2dab  sub bh,[rsi]
    2dad  stosb
    2dae  stosb
    2daf  sub bh,[rsi]
    2db1  stosb
    2db2  stosb
    2db3  sub bh,[rsi]
    2db5  add [rax],al
    2db7  add [rdi],bh
    2db9  add [rax],al
    2dbb  add [rdi],bh
    2dbd  add [rax],al
    2dbf  add [rdi],bh
    2dc1  add [rax],al
    2dc3  add [rdi],bh
    2dc5  add [rax],al
    2dc7  add [rdi],bh
    2dc9  add [rax],al
    2dcb  add [rdi],bh
    2dcd  add [rax],al
    2dcf  add [rdi],bh
    2dd1  add [rax],al
    2dd3  add [rdi],bh
    2dd5  add [rax],al
    2dd7  cmp byte [rdi],0
    2dda  add [rax-7FFFFFC1h],al
    2de0  (bad)
    2de2  add [rax-7FFFFFC1h],al
    2de8  (bad)
    2dea  add [rax-7FFFFFC1h],al
    2df0  (bad)
    2df2  add [rax-7FFFFFC1h],al
    2df8  (bad)
    2dfa  add [rax-7FFFFFC1h],al
    2e00  (bad)
    2e02  add [rax-7FFFFFC1h],al
    2e08  (bad)
    2e0a  add [rax-7FFFFFC1h],al
    2e10  (bad)
    2e12  add [rax-7FFFFFC1h],al
    2e18  inc dword [rax]
    2e1a  add [rax-7FFFFF01h],al
    2e20  inc dword [rax]
    2e22  add [rax-7FFFFF01h],al
    2e28  inc dword [rax]
    2e2a  add [rax-7FFFFF01h],al
    2e30  inc dword [rax]
    2e32  add [rax+0FFh],al
    2e38  add [rcx],al
    2e3a  add [rax],al
    2e3c  add [rdx],al
    2e3e  add [rax],al
    2e40  add [rbx],al
    2e42  add [rax],al
    2e44  add [rax+rax],al
    2e47  add [rax],al
    2e49  add eax,6000000h
    2e4e  add [rax],al
    2e50  add [rdi],al
    2e52  add [rax],al
    2e54  add [rax],cl
    2e56  add [rax],al
    2e58  add [rcx],cl
    2e5a  add [rax],al
    2e5c  add [rdx],cl
    2e5e  add [rax],al
    2e60  add [rbx],cl
    2e62  add [rax],al
    2e64  add [rax+rax],cl
    2e67  add [rax],al
    2e69  or eax,0E000000h
    2e6e  add [rax],al
    2e70  add [rdi],cl
    2e72  add [rax],al
    2e74  (bad)

map_n32_1e3898d682e799f0:
    2e80  lea rax,[rel 3151h]
    2e87  vbroadcastss ymm13,[rax]
    2e8c  vbroadcastss ymm12,[rax+20h]
    2e92  vbroadcastss ymm11,[rax+40h]
    2e98  vbroadcastss ymm10,[rax+60h]
    2e9e  vbroadcastss ymm9,[rax+80h]
    2ea7  vbroadcastss ymm8,[rax+0A0h]
    2eb0  vbroadcastss ymm7,[rax+0C0h]
    2eb9  vbroadcastss ymm15,[rax+0E0h]
    2ec2  vbroadcastss ymm6,[rax+100h]
    2ecb  vbroadcastss ymm5,[rax+120h]
    2ed4  vbroadcastss ymm14,[rax+140h]
    2edd  test rcx,rcx
    2ee0  je near 000000000000314Dh
    2ee6  vmovups ymm0,[rsi]
    2eea  vminps ymm0,ymm0,ymm5
    2eee  vsubps ymm1,ymm13,ymm0
    2ef2  vminps ymm2,ymm1,[rax+160h]
    2efa  vmovups ymm3,ymm14
    2eff  vfmadd231ps ymm3,ymm2,ymm6
    2f04  vsubps ymm4,ymm3,ymm14
    2f09  vfmadd231ps ymm2,ymm4,[rax+180h]
    2f12  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    2f1b  vmovups ymm4,ymm11
    2f20  vfmadd231ps ymm4,ymm12,ymm2
    2f25  vfmadd213ps ymm4,ymm2,ymm10
    2f2a  vfmadd213ps ymm4,ymm2,ymm9
    2f2f  vfmadd213ps ymm4,ymm2,ymm8
    2f34  vfmadd213ps ymm4,ymm2,ymm7
    2f39  vfmadd213ps ymm4,ymm2,ymm15
    2f3e  vfmadd213ps ymm4,ymm2,ymm15
    2f43  vpslld ymm2,ymm3,17h
    2f48  vpaddd ymm2,ymm2,ymm4
    2f4c  vcmpnltps ymm3,ymm1,[rax+1C0h]
    2f55  vpand ymm3,ymm3,ymm2
    2f59  vaddps ymm1,ymm15,ymm3
    2f5d  vdivps ymm1,ymm15,ymm1
    2f61  vmulps ymm0,ymm0,ymm1
    2f65  vmovups ymm1,[rdx]
    2f69  vaddps ymm1,ymm1,ymm15
    2f6e  vmulps ymm0,ymm0,ymm1
    2f72  vmovups [rdi],ymm0
    2f76  vmovups ymm0,[rsi+20h]
    2f7b  vminps ymm0,ymm0,ymm5
    2f7f  vsubps ymm1,ymm13,ymm0
    2f83  vminps ymm2,ymm1,[rax+160h]
    2f8b  vmovups ymm3,ymm14
    2f90  vfmadd231ps ymm3,ymm2,ymm6
    2f95  vsubps ymm4,ymm3,ymm14
    2f9a  vfmadd231ps ymm2,ymm4,[rax+180h]
    2fa3  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    2fac  vmovups ymm4,ymm11
    2fb1  vfmadd231ps ymm4,ymm12,ymm2
    2fb6  vfmadd213ps ymm4,ymm2,ymm10
    2fbb  vfmadd213ps ymm4,ymm2,ymm9
    2fc0  vfmadd213ps ymm4,ymm2,ymm8
    2fc5  vfmadd213ps ymm4,ymm2,ymm7
    2fca  vfmadd213ps ymm4,ymm2,ymm15
    2fcf  vfmadd213ps ymm4,ymm2,ymm15
    2fd4  vpslld ymm2,ymm3,17h
    2fd9  vpaddd ymm2,ymm2,ymm4
    2fdd  vcmpnltps ymm3,ymm1,[rax+1C0h]
    2fe6  vpand ymm3,ymm3,ymm2
    2fea  vaddps ymm1,ymm15,ymm3
    2fee  vdivps ymm1,ymm15,ymm1
    2ff2  vmulps ymm0,ymm0,ymm1
    2ff6  vmovups ymm1,[rdx+20h]
    2ffb  vaddps ymm1,ymm1,ymm15
    3000  vmulps ymm0,ymm0,ymm1
    3004  vmovups [rdi+20h],ymm0
    3009  vmovups ymm0,[rsi+40h]
    300e  vminps ymm0,ymm0,ymm5
    3012  vsubps ymm1,ymm13,ymm0
    3016  vminps ymm2,ymm1,[rax+160h]
    301e  vmovups ymm3,ymm14
    3023  vfmadd231ps ymm3,ymm2,ymm6
    3028  vsubps ymm4,ymm3,ymm14
    302d  vfmadd231ps ymm2,ymm4,[rax+180h]
    3036  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    303f  vmovups ymm4,ymm11
    3044  vfmadd231ps ymm4,ymm12,ymm2
    3049  vfmadd213ps ymm4,ymm2,ymm10
    304e  vfmadd213ps ymm4,ymm2,ymm9
    3053  vfmadd213ps ymm4,ymm2,ymm8
    3058  vfmadd213ps ymm4,ymm2,ymm7
    305d  vfmadd213ps ymm4,ymm2,ymm15
    3062  vfmadd213ps ymm4,ymm2,ymm15
    3067  vpslld ymm2,ymm3,17h
    306c  vpaddd ymm2,ymm2,ymm4
    3070  vcmpnltps ymm3,ymm1,[rax+1C0h]
    3079  vpand ymm3,ymm3,ymm2
    307d  vaddps ymm1,ymm15,ymm3
    3081  vdivps ymm1,ymm15,ymm1
    3085  vmulps ymm0,ymm0,ymm1
    3089  vmovups ymm1,[rdx+40h]
    308e  vaddps ymm1,ymm1,ymm15
    3093  vmulps ymm0,ymm0,ymm1
    3097  vmovups [rdi+40h],ymm0
    309c  vmovups ymm0,[rsi+60h]
    30a1  vminps ymm0,ymm0,ymm5
    30a5  vsubps ymm1,ymm13,ymm0
    30a9  vminps ymm2,ymm1,[rax+160h]
    30b1  vmovups ymm3,ymm14
    30b6  vfmadd231ps ymm3,ymm2,ymm6
    30bb  vsubps ymm4,ymm3,ymm14
    30c0  vfmadd231ps ymm2,ymm4,[rax+180h]
    30c9  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    30d2  vmovups ymm4,ymm11
    30d7  vfmadd231ps ymm4,ymm12,ymm2
    30dc  vfmadd213ps ymm4,ymm2,ymm10
    30e1  vfmadd213ps ymm4,ymm2,ymm9
    30e6  vfmadd213ps ymm4,ymm2,ymm8
    30eb  vfmadd213ps ymm4,ymm2,ymm7
    30f0  vfmadd213ps ymm4,ymm2,ymm15
    30f5  vfmadd213ps ymm4,ymm2,ymm15
    30fa  vpslld ymm2,ymm3,17h
    30ff  vpaddd ymm2,ymm2,ymm4
    3103  vcmpnltps ymm3,ymm1,[rax+1C0h]
    310c  vpand ymm3,ymm3,ymm2
    3110  vaddps ymm1,ymm15,ymm3
    3114  vdivps ymm1,ymm15,ymm1
    3118  vmulps ymm0,ymm0,ymm1
    311c  vmovups ymm1,[rdx+60h]
    3121  vaddps ymm1,ymm1,ymm15
    3126  vmulps ymm0,ymm0,ymm1
    312a  vmovups [rdi+60h],ymm0
    312f  add rdi,100h
    3136  add rsi,100h
    313d  add rdx,100h
    3144  dec rcx
    3147  jne near 0000000000002EE6h
    314d  vzeroupper
    3150  ret
    3151  add [rax],al
    3153  add [rax],al
    3155  add [rax],al
    3157  add [rax],al
    3159  add [rax],al
    315b  add [rax],al
    315d  add [rax],al
    315f  add [rax],al
    3161  add [rax],al
    3163  add [rax],al
    3165  add [rax],al
    3167  add [rax],al
    3169  add [rax],al
    316b  add [rax],al
    316d  add [rax],al
    316f  add [rax],al
    3171  imul edx,[eax+39h],39506967h
    3179  imul edx,[eax+39h],39506967h
    3181  imul edx,[eax+39h],39506967h
    3189  imul edx,[eax+39h],39506967h
    3191  (bad)
    3193  mov bh,3Ah
    3195  (bad)
    3197  mov bh,3Ah
    3199  (bad)
    319b  mov bh,3Ah
    319d  (bad)
    319f  mov bh,3Ah
    31a1  (bad)
    31a3  mov bh,3Ah
    31a5  (bad)
    31a7  mov bh,3Ah
    31a9  (bad)
    31ab  mov bh,3Ah
    31ad  (bad)
    31af  mov bh,3Ah
    31b1  or [rcx-76F7C3F8h],cl
    31b7  or [rax+rcx],bh
    31ba  mov [rax],ecx
    31bc  cmp al,8
    31be  mov [rax],ecx
    31c0  cmp al,8
    31c2  mov [rax],ecx
    31c4  cmp al,8
    31c6  mov [rax],ecx
    31c8  cmp al,8
    31ca  mov [rax],ecx
    31cc  cmp al,8
    31ce  mov [rax],ecx
    31d0  cmp al,0C1h
    31d2  test eax,0A9C13D2Ah
    31d7  sub bh,[rel 3D2ADB9Eh]
    31dd  shr dword [rcx-563EC2D6h],2Ah
    31e4  cmp eax,3D2AA9C1h
    31e9  shr dword [rcx-563EC2D6h],2Ah
    31f0  cmp eax,3E2AAAAAh
    31f5  stosb
    31f6  stosb
    31f7  sub bh,[rsi]
    31f9  stosb
    31fa  stosb
    31fb  sub bh,[rsi]
    31fd  stosb
    31fe  stosb
    31ff  sub bh,[rsi]
    3201  stosb
    3202  stosb
    3203  sub bh,[rsi]
    3205  stosb
    3206  stosb
    3207  sub bh,[rsi]
    3209  stosb
    320a  stosb
    320b  sub bh,[rsi]
    320d  stosb
    320e  stosb
    320f  sub bh,[rsi]
    3211  add [rax],al
    3213  add [rdi],bh
    3215  add [rax],al
    3217  add [rdi],bh
    3219  add [rax],al
    321b  add [rdi],bh
    321d  add [rax],al
    321f  add [rdi],bh
    3221  add [rax],al
    3223  add [rdi],bh
    3225  add [rax],al
    3227  add [rdi],bh
    3229  add [rax],al
    322b  add [rdi],bh
    322d  add [rax],al
    322f  add [rdi],bh
    3231  add [rax],al
    3233  cmp byte [rdi],0
    3236  add [rax-7FFFFFC1h],al
    323c  (bad)
    323e  add [rax-7FFFFFC1h],al
    3244  (bad)
    3246  add [rax-7FFFFFC1h],al
    324c  (bad)
    324e  add [rax-4755C4C1h],al
    3254  (bad)
    3256  stosb
    3257  mov eax,0B8AA3B3Fh
    325c  (bad)
    325e  stosb
    325f  mov eax,0B8AA3B3Fh
    3264  (bad)
    3266  stosb
    3267  mov eax,0B8AA3B3Fh
    326c  (bad)
    326e  stosb
    326f  mov eax,0E000003Fh
    3274  add [rax],al
    3277  loopne 00000000000032B9h
    3279  add [rax],al
    327b  loopne 00000000000032BDh
    327d  add [rax],al
    327f  loopne 00000000000032C1h
    3281  add [rax],al
    3283  loopne 00000000000032C5h
    3285  add [rax],al
    3287  loopne 00000000000032C9h
    3289  add [rax],al
    328b  loopne 00000000000032CDh
    328d  add [rax],al
    328f  loopne 00000000000032D1h
    3291  add [rax],al
    3293  add [r8],al
    3297  add [r8],al
    329b  add [r8],al
    329f  add [r8],al
    32a3  add [r8],al
    32a7  add [r8],al
    32ab  add [r8],al
    32af  add [r8],al
    32b3  mov al,42h
    32b5  add [rax],al
    32b7  mov al,42h
    32b9  add [rax],al
    32bb  mov al,42h
    32bd  add [rax],al
    32bf  mov al,42h
    32c1  add [rax],al
    32c3  mov al,42h
    32c5  add [rax],al
    32c7  mov al,42h
    32c9  add [rax],al
    32cb  mov al,42h
    32cd  add [rax],al
    32cf  mov al,42h
    32d1  add [rdx+31h],dh
    32d4  mov edi,0BF317200h
    32d9  add [rdx+31h],dh
    32dc  mov edi,0BF317200h
    32e1  add [rdx+31h],dh
    32e4  mov edi,0BF317200h
    32e9  add [rdx+31h],dh
    32ec  mov edi,0BF317200h
    32f1  (bad)
    32f7  mov edi,0BFBE8EB5h
    32fc  mov ch,8Eh
    32fe  mov esi,0BE8EB5BFh
    3303  mov edi,0BFBE8EB5h
    3308  mov ch,8Eh
    330a  mov esi,0BE8EB5BFh
    330f  mov edi,0AE0000B5h
    3314  ret 0
    3317  scasb
    3318  ret 0
    331b  scasb
    331c  ret 0
    331f  scasb
    3320  ret 0
    3323  scasb
    3324  ret 0
    3327  scasb
    3328  ret 0
    332b  scasb
    332c  ret 0
    332f  scasb
    3330  (bad)

quantize_q8:
    3340  lea rax,[rel 34A9h]
    3347  vpxor ymm15,ymm15,ymm15
    334c  vpbroadcastd ymm14,[rax+4]
    3352  vpbroadcastd ymm13,[rax]
    3357  vpbroadcastd ymm12,[rax+8]
    335d  vpbroadcastd ymm11,[rax+0Ch]
    3363  vpbroadcastd ymm10,[rax+10h]
    3369  vmovdqu ymm9,[rax+14h]
    336e  test r8,r8
    3371  je near 00000000000034A5h
    3377  vmovups ymm0,[rdi]
    337b  vpand ymm4,ymm0,ymm13
    3380  vmovups ymm1,[rdi+20h]
    3385  vpand ymm5,ymm1,ymm13
    338a  vpmaxsd ymm4,ymm4,ymm5
    338f  vmovups ymm2,[rdi+40h]
    3394  vpand ymm5,ymm2,ymm13
    3399  vpmaxsd ymm4,ymm4,ymm5
    339e  vmovups ymm3,[rdi+60h]
    33a3  vpand ymm5,ymm3,ymm13
    33a8  vpmaxsd ymm4,ymm4,ymm5
    33ad  vextracti128 xmm5,ymm4,1
    33b3  vpmaxsd xmm4,xmm4,xmm5
    33b8  vpshufd xmm5,xmm4,4Eh
    33bd  vpmaxsd xmm4,xmm4,xmm5
    33c2  vpshufd xmm5,xmm4,0B1h
    33c7  vpmaxsd xmm4,xmm4,xmm5
    33cc  vdivss xmm5,xmm4,xmm14
    33d1  vmovss [rdx],xmm5
    33d5  vcmpneqps xmm5,xmm4,xmm15
    33db  vdivps xmm4,xmm14,xmm4
    33df  vandps xmm4,xmm4,xmm5
    33e3  vbroadcastss ymm4,xmm4
    33e8  vmulps ymm0,ymm0,ymm4
    33ec  vaddps ymm0,ymm0,ymm12
    33f1  vpsubd ymm0,ymm0,ymm12
    33f6  vpmaxsd ymm0,ymm0,ymm11
    33fb  vpminsd ymm0,ymm0,ymm10
    3400  vmulps ymm1,ymm1,ymm4
    3404  vaddps ymm1,ymm1,ymm12
    3409  vpsubd ymm1,ymm1,ymm12
    340e  vpmaxsd ymm1,ymm1,ymm11
    3413  vpminsd ymm1,ymm1,ymm10
    3418  vmulps ymm2,ymm2,ymm4
    341c  vaddps ymm2,ymm2,ymm12
    3421  vpsubd ymm2,ymm2,ymm12
    3426  vpmaxsd ymm2,ymm2,ymm11
    342b  vpminsd ymm2,ymm2,ymm10
    3430  vmulps ymm3,ymm3,ymm4
    3434  vaddps ymm3,ymm3,ymm12
    3439  vpsubd ymm3,ymm3,ymm12
    343e  vpmaxsd ymm3,ymm3,ymm11
    3443  vpminsd ymm3,ymm3,ymm10
    3448  vpaddd ymm4,ymm0,ymm1
    344c  vpaddd ymm5,ymm2,ymm3
    3450  vpaddd ymm4,ymm4,ymm5
    3454  vpackssdw ymm0,ymm0,ymm1
    3458  vpackssdw ymm2,ymm2,ymm3
    345c  vpacksswb ymm0,ymm0,ymm2
    3460  vpermd ymm0,ymm9,ymm0
    3465  vmovdqu [rsi],ymm0
    3469  vextracti128 xmm5,ymm4,1
    346f  vpaddd xmm4,xmm4,xmm5
    3473  vpshufd xmm5,xmm4,4Eh
    3478  vpaddd xmm4,xmm4,xmm5
    347c  vpshufd xmm5,xmm4,0B1h
    3481  vpaddd xmm4,xmm4,xmm5
    3485  vmovd [rcx],xmm4
    3489  add rdi,80h
    3490  add rsi,20h
    3494  add rdx,4
    3498  add rcx,4
    349c  dec r8
    349f  jne near 0000000000003377h
    34a5  vzeroupper
    34a8  ret
    34a9  (bad)
    34ab  (bad)
    34ad  add [rax],al
    34af  inc byte [rdx]
    34b2  add [rax+4Bh],al
    34b5  cmp bh,0FFh
    34b8  (bad)
    34ba  add [rax],al
    34bc  add [rax],al
    34be  add [rax],al
    34c0  add [rax+rax],al
    34c3  add [rax],al
    34c5  add [rax],eax
    34c7  add [rax],al
    34c9  add eax,2000000h
    34ce  add [rax],al
    34d0  add [rsi],al
    34d2  add [rax],al
    34d4  add [rbx],al
    34d6  add [rax],al
    34d8  add [rdi],al
    34da  add [rax],al
    34dc  (bad)
