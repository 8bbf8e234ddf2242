dot_mxfp4_q8_k64_t1:
       0  push rbx
       1  push rbp
       2  lea r11,[rel 300h]
       9  vmovdqu ymm0,[r11+20h]
       f  lea rbx,[rdi+2000h]
      16  sub rsp,40h
      1a  vpxor ymm2,ymm2,ymm2
      1e  mov rbp,[rsi]
      21  vpxor ymm10,ymm10,ymm10
      26  vpxor ymm11,ymm11,ymm11
      2b  mov r8,rdi
      2e  lea r9,[rdi+40h]
      32  xor r10,r10
      35  prefetcht1 [rbx]
      38  prefetcht1 [rbx+40h]
      3c  vmovdqu ymm4,[r9]
      41  vmovdqu ymm5,[r9+20h]
      47  vpsrlw ymm6,ymm4,4
      4c  vpsrlw ymm7,ymm5,4
      51  vpand ymm4,ymm4,[r11]
      56  vpand ymm5,ymm5,[r11]
      5b  vpand ymm6,ymm6,[r11]
      60  vpand ymm7,ymm7,[r11]
      65  vpshufb ymm4,ymm0,ymm4
      6a  vpshufb ymm5,ymm0,ymm5
      6f  vpshufb ymm6,ymm0,ymm6
      74  vpshufb ymm7,ymm0,ymm7
      79  vpbroadcastd ymm1,[rbp+r10*8]
      80  vpmaddubsw ymm8,ymm4,ymm1
      85  vpmaddubsw ymm9,ymm5,ymm1
      8a  vpbroadcastd ymm1,[rbp+r10*8+4]
      91  vpmaddubsw ymm2,ymm6,ymm1
      96  vpmaddubsw ymm3,ymm7,ymm1
      9b  vpaddw ymm8,ymm8,ymm2
      9f  vpaddw ymm9,ymm9,ymm3
      a3  prefetcht1 [rbx+80h]
      aa  vmovdqu ymm4,[r9+40h]
      b0  vmovdqu ymm5,[r9+60h]
      b6  vpsrlw ymm6,ymm4,4
      bb  vpsrlw ymm7,ymm5,4
      c0  vpand ymm4,ymm4,[r11]
      c5  vpand ymm5,ymm5,[r11]
      ca  vpand ymm6,ymm6,[r11]
      cf  vpand ymm7,ymm7,[r11]
      d4  vpshufb ymm4,ymm0,ymm4
      d9  vpshufb ymm5,ymm0,ymm5
      de  vpshufb ymm6,ymm0,ymm6
      e3  vpshufb ymm7,ymm0,ymm7
      e8  vpbroadcastd ymm1,[rbp+r10*8+8]
      ef  vpmaddubsw ymm2,ymm4,ymm1
      f4  vpmaddubsw ymm3,ymm5,ymm1
      f9  vpaddw ymm8,ymm8,ymm2
      fd  vpaddw ymm9,ymm9,ymm3
     101  vpbroadcastd ymm1,[rbp+r10*8+0Ch]
     108  vpmaddubsw ymm2,ymm6,ymm1
     10d  vpmaddubsw ymm3,ymm7,ymm1
     112  vpaddw ymm8,ymm8,ymm2
     116  vpaddw ymm9,ymm9,ymm3
     11a  vpmaddwd ymm8,ymm8,[r11+40h]
     120  vpmaddwd ymm9,ymm9,[r11+40h]
     126  vmovdqu [rsp],ymm8
     12b  vmovdqu [rsp+20h],ymm9
     131  prefetcht1 [rbx+0C0h]
     138  vmovdqu ymm4,[r9+80h]
     141  vmovdqu ymm5,[r9+0A0h]
     14a  vpsrlw ymm6,ymm4,4
     14f  vpsrlw ymm7,ymm5,4
     154  vpand ymm4,ymm4,[r11]
     159  vpand ymm5,ymm5,[r11]
     15e  vpand ymm6,ymm6,[r11]
     163  vpand ymm7,ymm7,[r11]
     168  vpshufb ymm4,ymm0,ymm4
     16d  vpshufb ymm5,ymm0,ymm5
     172  vpshufb ymm6,ymm0,ymm6
     177  vpshufb ymm7,ymm0,ymm7
     17c  vpbroadcastd ymm1,[rbp+r10*8+10h]
     183  vpmaddubsw ymm8,ymm4,ymm1
     188  vpmaddubsw ymm9,ymm5,ymm1
     18d  vpbroadcastd ymm1,[rbp+r10*8+14h]
     194  vpmaddubsw ymm2,ymm6,ymm1
     199  vpmaddubsw ymm3,ymm7,ymm1
     19e  vpaddw ymm8,ymm8,ymm2
     1a2  vpaddw ymm9,ymm9,ymm3
     1a6  prefetcht1 [rbx+100h]
     1ad  vmovdqu ymm4,[r9+0C0h]
     1b6  vmovdqu ymm5,[r9+0E0h]
     1bf  vpsrlw ymm6,ymm4,4
     1c4  vpsrlw ymm7,ymm5,4
     1c9  vpand ymm4,ymm4,[r11]
     1ce  vpand ymm5,ymm5,[r11]
     1d3  vpand ymm6,ymm6,[r11]
     1d8  vpand ymm7,ymm7,[r11]
     1dd  vpshufb ymm4,ymm0,ymm4
     1e2  vpshufb ymm5,ymm0,ymm5
     1e7  vpshufb ymm6,ymm0,ymm6
     1ec  vpshufb ymm7,ymm0,ymm7
     1f1  vpbroadcastd ymm1,[rbp+r10*8+18h]
     1f8  vpmaddubsw ymm2,ymm4,ymm1
     1fd  vpmaddubsw ymm3,ymm5,ymm1
     202  vpaddw ymm8,ymm8,ymm2
     206  vpaddw ymm9,ymm9,ymm3
     20a  vpbroadcastd ymm1,[rbp+r10*8+1Ch]
     211  vpmaddubsw ymm2,ymm6,ymm1
     216  vpmaddubsw ymm3,ymm7,ymm1
     21b  vpaddw ymm8,ymm8,ymm2
     21f  vpaddw ymm9,ymm9,ymm3
     223  vpmaddwd ymm8,ymm8,[r11+40h]
     229  vpmaddwd ymm9,ymm9,[r11+40h]
     22f  vpbroadcastd ymm2,[rbp+r10+48h]
     236  vpmulld ymm2,ymm2,[r11+0C0h]
     23f  vpaddd ymm8,ymm8,ymm2
     243  vpaddd ymm8,ymm8,[rsp]
     248  vpaddd ymm9,ymm9,ymm2
     24c  vpaddd ymm9,ymm9,[rsp+20h]
     252  add rbx,110h
     259  vpmovzxbd ymm4,[r8]
     25e  vpslld ymm4,ymm4,17h
     263  vpmaxud ymm4,ymm4,[r11+80h]
     26c  vmulps ymm4,ymm4,[r11+0A0h]
     275  vpmovzxbd ymm5,[r8+8]
     27b  vpslld ymm5,ymm5,17h
     280  vpmaxud ymm5,ymm5,[r11+80h]
     289  vmulps ymm5,ymm5,[r11+0A0h]
     292  vbroadcastss ymm1,[rbp+r10+40h]
     299  vcvtdq2ps ymm8,ymm8
     29e  vmulps ymm8,ymm8,ymm4
     2a2  vfmadd231ps ymm10,ymm8,ymm1
     2a7  vcvtdq2ps ymm9,ymm9
     2ac  vmulps ymm9,ymm9,ymm5
     2b0  vfmadd231ps ymm11,ymm9,ymm1
     2b5  add r8,10h
     2b9  add r9,100h
     2c0  add r10,4
     2c4  cmp r10,8
     2c8  jne near 0000000000000035h
     2ce  vmovups [rdx],ymm10
     2d2  vmovups [rdx+20h],ymm11
     2d7  add rdx,rcx
     2da  add rsp,40h
     2de  vzeroupper
     2e1  pop rbp
     2e2  pop rbx
     2e3  ret
     2e4  add [rax],al
     2e6  add [rax],al
     2e8  add [rax],al
     2ea  add [rax],al
     2ec  add [rax],al
     2ee  add [rax],al
     2f0  add [rax],al
     2f2  add [rax],al
     2f4  add [rax],al
     2f6  add [rax],al
     2f8  add [rax],al
     2fa  add [rax],al
     2fc  add [rax],al
     2fe  add [rax],al
     300  (bad)
     304  (bad)
     308  (bad)
     30c  (bad)
     310  (bad)
     314  (bad)
     318  (bad)
     31c  (bad)
     320  or al,0Dh
     322  (bad)
     324  adc [rdx],dl
     326  adc al,18h
     328  or al,0Bh
     32a  or cl,[rcx]
     32c  or [rsi],al
     32e  add al,0
     330  or al,0Dh
     332  (bad)
     334  adc [rdx],dl
     336  adc al,18h
     338  or al,0Bh
     33a  or cl,[rcx]
     33c  or [rsi],al
     33e  add al,0
     340  add [rax],eax
     342  add [rax],eax
     344  add [rax],eax
     346  add [rax],eax
     348  add [rax],eax
     34a  add [rax],eax
     34c  add [rax],eax
     34e  add [rax],eax
     350  add [rax],eax
     352  add [rax],eax
     354  add [rax],eax
     356  add [rax],eax
     358  add [rax],eax
     35a  add [rax],eax
     35c  add [rax],eax
     35e  add [rax],eax
     360  add byte [rax-7F7F7F80h],80h
     367  add byte [rax-7F7F7F80h],80h
     36e  add byte [rax-7F7F7F80h],80h
     375  add byte [rax-7F7F7F80h],80h
     37c  add byte [rax+8080h],40h
     383  add [rax],al
     385  add [rax],al
     388  add [rax],al
     38a  add [rax],al
     38d  add [rax],al
     390  add [rax],al
     392  add [rax],al
     395  add [rax],al
     398  add [rax],al
     39a  add [rax],al
     39d  add [rax],al
     3a0  add [rax],al
     3a2  add [rdi],bh
     3a4  add [rax],al
     3a6  add [rdi],bh
     3a8  add [rax],al
     3aa  add [rdi],bh
     3ac  add [rax],al
     3ae  add [rdi],bh
     3b0  add [rax],al
     3b2  add [rdi],bh
     3b4  add [rax],al
     3b6  add [rdi],bh
     3b8  add [rax],al
     3ba  add [rdi],bh
     3bc  add [rax],al
     3be  add [rdi],bh
     3c0  hlt
     3c1  (bad)
     3c3  push rsp
     3c5  (bad)
     3c7  push rsp
     3c9  (bad)
     3cb  push rsp
     3cd  (bad)
     3cf  push rsp
     3d1  (bad)
     3d3  push rsp
     3d5  (bad)
     3d7  push rsp
     3d9  (bad)
     3db  push rsp
     3dd  (bad)
     3df  inc dword [rax]
     3e1  add [rax-35h],al
     3e4  add [rax],al
     3e6  retf
     3e8  add [rax],al
     3ea  retf
     3ec  add [rax],al
     3ee  retf
     3f0  add [rax],al
     3f2  retf
     3f4  add [rax],al
     3f6  retf
     3f8  add [rax],al
     3fa  retf
     3fc  add [rax],al
     3fe  retf

dot_int8_q8_k64_t1:
     400  push rbx
     401  push rbp
     402  lea r11,[rel 700h]
     409  vmovdqu ymm0,[r11+60h]
     40f  lea rbx,[rdi+2000h]
     416  vpxor ymm2,ymm2,ymm2
     41a  mov rbp,[rsi]
     41d  vpxor ymm10,ymm10,ymm10
     422  vpxor ymm11,ymm11,ymm11
     427  mov r8,rdi
     42a  lea r9,[rdi+40h]
     42e  xor r10,r10
     431  prefetcht1 [rbx]
     434  prefetcht1 [rbx+40h]
     438  vpxor ymm4,ymm0,[r9]
     43d  vpxor ymm5,ymm0,[r9+20h]
     443  vpbroadcastd ymm1,[rbp+r10*8]
     44a  vpabsb ymm6,ymm1
     44f  vpsignb ymm2,ymm4,ymm1
     454  vpsignb ymm3,ymm5,ymm1
     459  vpmaddubsw ymm2,ymm6,ymm2
     45e  vpmaddubsw ymm3,ymm6,ymm3
     463  vpmaddwd ymm8,ymm2,[r11+40h]
     469  vpmaddwd ymm9,ymm3,[r11+40h]
     46f  prefetcht1 [rbx+80h]
     476  vpxor ymm4,ymm0,[r9+40h]
     47c  vpxor ymm5,ymm0,[r9+60h]
     482  vpbroadcastd ymm1,[rbp+r10*8+4]
     489  vpabsb ymm6,ymm1
     48e  vpsignb ymm2,ymm4,ymm1
     493  vpsignb ymm3,ymm5,ymm1
     498  vpmaddubsw ymm2,ymm6,ymm2
     49d  vpmaddubsw ymm3,ymm6,ymm3
     4a2  vpmaddwd ymm2,ymm2,[r11+40h]
     4a8  vpmaddwd ymm3,ymm3,[r11+40h]
     4ae  vpaddd ymm8,ymm8,ymm2
     4b2  vpaddd ymm9,ymm9,ymm3
     4b6  prefetcht1 [rbx+0C0h]
     4bd  vpxor ymm4,ymm0,[r9+80h]
     4c6  vpxor ymm5,ymm0,[r9+0A0h]
     4cf  vpbroadcastd ymm1,[rbp+r10*8+8]
     4d6  vpabsb ymm6,ymm1
     4db  vpsignb ymm2,ymm4,ymm1
     4e0  vpsignb ymm3,ymm5,ymm1
     4e5  vpmaddubsw ymm2,ymm6,ymm2
     4ea  vpmaddubsw ymm3,ymm6,ymm3
     4ef  vpmaddwd ymm2,ymm2,[r11+40h]
     4f5  vpmaddwd ymm3,ymm3,[r11+40h]
     4fb  vpaddd ymm8,ymm8,ymm2
     4ff  vpaddd ymm9,ymm9,ymm3
     503  prefetcht1 [rbx+100h]
     50a  vpxor ymm4,ymm0,[r9+0C0h]
     513  vpxor ymm5,ymm0,[r9+0E0h]
     51c  vpbroadcastd ymm1,[rbp+r10*8+0Ch]
     523  vpabsb ymm6,ymm1
     528  vpsignb ymm2,ymm4,ymm1
     52d  vpsignb ymm3,ymm5,ymm1
     532  vpmaddubsw ymm2,ymm6,ymm2
     537  vpmaddubsw ymm3,ymm6,ymm3
     53c  vpmaddwd ymm2,ymm2,[r11+40h]
     542  vpmaddwd ymm3,ymm3,[r11+40h]
     548  vpaddd ymm8,ymm8,ymm2
     54c  vpaddd ymm9,ymm9,ymm3
     550  prefetcht1 [rbx+140h]
     557  vpxor ymm4,ymm0,[r9+100h]
     560  vpxor ymm5,ymm0,[r9+120h]
     569  vpbroadcastd ymm1,[rbp+r10*8+10h]
     570  vpabsb ymm6,ymm1
     575  vpsignb ymm2,ymm4,ymm1
     57a  vpsignb ymm3,ymm5,ymm1
     57f  vpmaddubsw ymm2,ymm6,ymm2
     584  vpmaddubsw ymm3,ymm6,ymm3
     589  vpmaddwd ymm2,ymm2,[r11+40h]
     58f  vpmaddwd ymm3,ymm3,[r11+40h]
     595  vpaddd ymm8,ymm8,ymm2
     599  vpaddd ymm9,ymm9,ymm3
     59d  prefetcht1 [rbx+180h]
     5a4  vpxor ymm4,ymm0,[r9+140h]
     5ad  vpxor ymm5,ymm0,[r9+160h]
     5b6  vpbroadcastd ymm1,[rbp+r10*8+14h]
     5bd  vpabsb ymm6,ymm1
     5c2  vpsignb ymm2,ymm4,ymm1
     5c7  vpsignb ymm3,ymm5,ymm1
     5cc  vpmaddubsw ymm2,ymm6,ymm2
     5d1  vpmaddubsw ymm3,ymm6,ymm3
     5d6  vpmaddwd ymm2,ymm2,[r11+40h]
     5dc  vpmaddwd ymm3,ymm3,[r11+40h]
     5e2  vpaddd ymm8,ymm8,ymm2
     5e6  vpaddd ymm9,ymm9,ymm3
     5ea  prefetcht1 [rbx+1C0h]
     5f1  vpxor ymm4,ymm0,[r9+180h]
     5fa  vpxor ymm5,ymm0,[r9+1A0h]
     603  vpbroadcastd ymm1,[rbp+r10*8+18h]
     60a  vpabsb ymm6,ymm1
     60f  vpsignb ymm2,ymm4,ymm1
     614  vpsignb ymm3,ymm5,ymm1
     619  vpmaddubsw ymm2,ymm6,ymm2
     61e  vpmaddubsw ymm3,ymm6,ymm3
     623  vpmaddwd ymm2,ymm2,[r11+40h]
     629  vpmaddwd ymm3,ymm3,[r11+40h]
     62f  vpaddd ymm8,ymm8,ymm2
     633  vpaddd ymm9,ymm9,ymm3
     637  prefetcht1 [rbx+200h]
     63e  vpxor ymm4,ymm0,[r9+1C0h]
     647  vpxor ymm5,ymm0,[r9+1E0h]
     650  vpbroadcastd ymm1,[rbp+r10*8+1Ch]
     657  vpabsb ymm6,ymm1
     65c  vpsignb ymm2,ymm4,ymm1
     661  vpsignb ymm3,ymm5,ymm1
     666  vpmaddubsw ymm2,ymm6,ymm2
     66b  vpmaddubsw ymm3,ymm6,ymm3
     670  vpmaddwd ymm2,ymm2,[r11+40h]
     676  vpmaddwd ymm3,ymm3,[r11+40h]
     67c  vpaddd ymm8,ymm8,ymm2
     680  vpaddd ymm9,ymm9,ymm3
     684  add rbx,220h
     68b  vcvtph2ps ymm4,[r8]
     690  vcvtph2ps ymm5,[r8+10h]
     696  vbroadcastss ymm1,[rbp+r10+40h]
     69d  vcvtdq2ps ymm8,ymm8
     6a2  vmulps ymm8,ymm8,ymm4
     6a6  vfmadd231ps ymm10,ymm8,ymm1
     6ab  vcvtdq2ps ymm9,ymm9
     6b0  vmulps ymm9,ymm9,ymm5
     6b4  vfmadd231ps ymm11,ymm9,ymm1
     6b9  add r8,20h
     6bd  add r9,200h
     6c4  add r10,4
     6c8  cmp r10,8
     6cc  jne near 0000000000000431h
     6d2  vmovups [rdx],ymm10
     6d6  vmovups [rdx+20h],ymm11
     6db  add rdx,rcx
     6de  vzeroupper
     6e1  pop rbp
     6e2  pop rbx
     6e3  ret
     6e4  add [rax],al
     6e6  add [rax],al
     6e8  add [rax],al
     6ea  add [rax],al
     6ec  add [rax],al
     6ee  add [rax],al
     6f0  add [rax],al
     6f2  add [rax],al
     6f4  add [rax],al
     6f6  add [rax],al
     6f8  add [rax],al
     6fa  add [rax],al
     6fc  add [rax],al
     6fe  add [rax],al
     700  (bad)
     704  (bad)
     708  (bad)
     70c  (bad)
     710  (bad)
     714  (bad)
     718  (bad)
     71c  (bad)
     720  or al,0Dh
     722  (bad)
     724  adc [rdx],dl
     726  adc al,18h
     728  or al,0Bh
     72a  or cl,[rcx]
     72c  or [rsi],al
     72e  add al,0
     730  or al,0Dh
     732  (bad)
     734  adc [rdx],dl
     736  adc al,18h
     738  or al,0Bh
     73a  or cl,[rcx]
     73c  or [rsi],al
     73e  add al,0
     740  add [rax],eax
     742  add [rax],eax
     744  add [rax],eax
     746  add [rax],eax
     748  add [rax],eax
     74a  add [rax],eax
     74c  add [rax],eax
     74e  add [rax],eax
     750  add [rax],eax
     752  add [rax],eax
     754  add [rax],eax
     756  add [rax],eax
     758  add [rax],eax
     75a  add [rax],eax
     75c  add [rax],eax
     75e  add [rax],eax
     760  add byte [rax-7F7F7F80h],80h
     767  add byte [rax-7F7F7F80h],80h
     76e  add byte [rax-7F7F7F80h],80h
     775  add byte [rax-7F7F7F80h],80h
     77c  add byte [rax+8080h],40h
     783  add [rax],al
     785  add [rax],al
     788  add [rax],al
     78a  add [rax],al
     78d  add [rax],al
     790  add [rax],al
     792  add [rax],al
     795  add [rax],al
     798  add [rax],al
     79a  add [rax],al
     79d  add [rax],al
     7a0  add [rax],al
     7a2  add [rdi],bh
     7a4  add [rax],al
     7a6  add [rdi],bh
     7a8  add [rax],al
     7aa  add [rdi],bh
     7ac  add [rax],al
     7ae  add [rdi],bh
     7b0  add [rax],al
     7b2  add [rdi],bh
     7b4  add [rax],al
     7b6  add [rdi],bh
     7b8  add [rax],al
     7ba  add [rdi],bh
     7bc  add [rax],al
     7be  add [rdi],bh
     7c0  cmp bh,0FFh
     7c3  inc dword [rax-7F000001h]
     7c9  (bad)
     7cb  inc dword [rax-7F000001h]
     7d1  (bad)
     7d3  inc dword [rax-7F000001h]
     7d9  (bad)
     7db  inc dword [rax+0FFFFFFh]
     7e1  add [rax-35h],al
     7e4  add [rax],al
     7e6  retf
     7e8  add [rax],al
     7ea  retf
     7ec  add [rax],al
     7ee  retf
     7f0  add [rax],al
     7f2  retf
     7f4  add [rax],al
     7f6  retf
     7f8  add [rax],al
     7fa  retf
     7fc  add [rax],al
     7fe  retf

gemm_pair_q8_1x2:
     800  push rbx
     801  push rbp
     802  push r12
     804  test rcx,rcx
     807  je near 0000000000000AEEh
     80d  lea rax,[rel 0AF6h]
     814  mov rbp,rdx
     817  lea r10,[rdi]
     81a  mov r11,rsi
     81d  mov rbx,rcx
     820  vpbroadcastd ymm4,[r11+0D8h]
     829  vpbroadcastd ymm5,[r11+0D8h]
     832  vpbroadcastd ymm6,[r11+0DCh]
     83b  vpbroadcastd ymm7,[r11+0DCh]
     844  vmovdqu ymm0,[r10+80h]
     84d  vmovdqu ymm1,[r10+0A0h]
     856  vpbroadcastd ymm3,[r11]
     85b  vpmaddubsw ymm2,ymm0,ymm3
     860  vpmaddubsw ymm3,ymm1,ymm3
     865  vpaddw ymm4,ymm4,ymm2
     869  vpaddw ymm5,ymm5,ymm3
     86d  vpbroadcastd ymm3,[r11+20h]
     873  vpmaddubsw ymm2,ymm0,ymm3
     878  vpmaddubsw ymm3,ymm1,ymm3
     87d  vpaddw ymm6,ymm6,ymm2
     881  vpaddw ymm7,ymm7,ymm3
     885  vmovdqu ymm0,[r10+0C0h]
     88e  vmovdqu ymm1,[r10+0E0h]
     897  vpbroadcastd ymm3,[r11+4]
     89d  vpmaddubsw ymm2,ymm0,ymm3
     8a2  vpmaddubsw ymm3,ymm1,ymm3
     8a7  vpaddw ymm4,ymm4,ymm2
     8ab  vpaddw ymm5,ymm5,ymm3
     8af  vpbroadcastd ymm3,[r11+24h]
     8b5  vpmaddubsw ymm2,ymm0,ymm3
     8ba  vpmaddubsw ymm3,ymm1,ymm3
     8bf  vpaddw ymm6,ymm6,ymm2
     8c3  vpaddw ymm7,ymm7,ymm3
     8c7  vmovdqu ymm0,[r10+100h]
     8d0  vmovdqu ymm1,[r10+120h]
     8d9  vpbroadcastd ymm3,[r11+8]
     8df  vpmaddubsw ymm2,ymm0,ymm3
     8e4  vpmaddubsw ymm3,ymm1,ymm3
     8e9  vpaddw ymm4,ymm4,ymm2
     8ed  vpaddw ymm5,ymm5,ymm3
     8f1  vpbroadcastd ymm3,[r11+28h]
     8f7  vpmaddubsw ymm2,ymm0,ymm3
     8fc  vpmaddubsw ymm3,ymm1,ymm3
     901  vpaddw ymm6,ymm6,ymm2
     905  vpaddw ymm7,ymm7,ymm3
     909  vmovdqu ymm0,[r10+140h]
     912  vmovdqu ymm1,[r10+160h]
     91b  vpbroadcastd ymm3,[r11+0Ch]
     921  vpmaddubsw ymm2,ymm0,ymm3
     926  vpmaddubsw ymm3,ymm1,ymm3
     92b  vpaddw ymm4,ymm4,ymm2
     92f  vpaddw ymm5,ymm5,ymm3
     933  vpbroadcastd ymm3,[r11+2Ch]
     939  vpmaddubsw ymm2,ymm0,ymm3
     93e  vpmaddubsw ymm3,ymm1,ymm3
     943  vpaddw ymm6,ymm6,ymm2
     947  vpaddw ymm7,ymm7,ymm3
     94b  vmovdqu ymm0,[r10+180h]
     954  vmovdqu ymm1,[r10+1A0h]
     95d  vpbroadcastd ymm3,[r11+10h]
     963  vpmaddubsw ymm2,ymm0,ymm3
     968  vpmaddubsw ymm3,ymm1,ymm3
     96d  vpaddw ymm4,ymm4,ymm2
     971  vpaddw ymm5,ymm5,ymm3
     975  vpbroadcastd ymm3,[r11+30h]
     97b  vpmaddubsw ymm2,ymm0,ymm3
     980  vpmaddubsw ymm3,ymm1,ymm3
     985  vpaddw ymm6,ymm6,ymm2
     989  vpaddw ymm7,ymm7,ymm3
     98d  vmovdqu ymm0,[r10+1C0h]
     996  vmovdqu ymm1,[r10+1E0h]
     99f  vpbroadcastd ymm3,[r11+14h]
     9a5  vpmaddubsw ymm2,ymm0,ymm3
     9aa  vpmaddubsw ymm3,ymm1,ymm3
     9af  vpaddw ymm4,ymm4,ymm2
     9b3  vpaddw ymm5,ymm5,ymm3
     9b7  vpbroadcastd ymm3,[r11+34h]
     9bd  vpmaddubsw ymm2,ymm0,ymm3
     9c2  vpmaddubsw ymm3,ymm1,ymm3
     9c7  vpaddw ymm6,ymm6,ymm2
     9cb  vpaddw ymm7,ymm7,ymm3
     9cf  vmovdqu ymm0,[r10+200h]
     9d8  vmovdqu ymm1,[r10+220h]
     9e1  vpbroadcastd ymm3,[r11+18h]
     9e7  vpmaddubsw ymm2,ymm0,ymm3
     9ec  vpmaddubsw ymm3,ymm1,ymm3
     9f1  vpaddw ymm4,ymm4,ymm2
     9f5  vpaddw ymm5,ymm5,ymm3
     9f9  vpbroadcastd ymm3,[r11+38h]
     9ff  vpmaddubsw ymm2,ymm0,ymm3
     a04  vpmaddubsw ymm3,ymm1,ymm3
     a09  vpaddw ymm6,ymm6,ymm2
     a0d  vpaddw ymm7,ymm7,ymm3
     a11  vmovdqu ymm0,[r10+240h]
     a1a  vmovdqu ymm1,[r10+260h]
     a23  vpbroadcastd ymm3,[r11+1Ch]
     a29  vpmaddubsw ymm2,ymm0,ymm3
     a2e  vpmaddubsw ymm3,ymm1,ymm3
     a33  vpaddw ymm4,ymm4,ymm2
     a37  vpaddw ymm5,ymm5,ymm3
     a3b  vpbroadcastd ymm3,[r11+3Ch]
     a41  vpmaddubsw ymm2,ymm0,ymm3
     a46  vpmaddubsw ymm3,ymm1,ymm3
     a4b  vpaddw ymm6,ymm6,ymm2
     a4f  vpaddw ymm7,ymm7,ymm3
     a53  vmovups ymm0,[r10]
     a58  vmovups ymm1,[r10+20h]
     a5e  vpbroadcastd ymm2,[rax]
     a63  vbroadcastss ymm3,[r11+0C0h]
     a6c  vpmaddwd ymm4,ymm4,ymm2
     a70  vcvtdq2ps ymm4,ymm4
     a74  vmulps ymm4,ymm4,ymm0
     a78  vfmadd213ps ymm4,ymm3,[rbp]
     a7e  vmovups [rbp],ymm4
     a83  vpmaddwd ymm5,ymm5,ymm2
     a87  vcvtdq2ps ymm5,ymm5
     a8b  vmulps ymm5,ymm5,ymm1
     a8f  vfmadd213ps ymm5,ymm3,[rbp+20h]
     a95  vmovups [rbp+20h],ymm5
     a9a  vbroadcastss ymm3,[r11+0C4h]
     aa3  vpmaddwd ymm6,ymm6,ymm2
     aa7  vcvtdq2ps ymm6,ymm6
     aab  vmulps ymm6,ymm6,ymm0
     aaf  vfmadd213ps ymm6,ymm3,[rbp+r8]
     ab6  vmovups [rbp+r8],ymm6
     abd  vpmaddwd ymm7,ymm7,ymm2
     ac1  vcvtdq2ps ymm7,ymm7
     ac5  vmulps ymm7,ymm7,ymm1
     ac9  vfmadd213ps ymm7,ymm3,[rbp+r8+20h]
     ad0  vmovups [rbp+r8+20h],ymm7
     ad7  add r10,280h
     ade  add r11,100h
     ae5  dec rbx
     ae8  jne near 0000000000000820h
     aee  vzeroupper
     af1  pop r12
     af3  pop rbp
     af4  pop rbx
     af5  ret
     af6  add [rax],eax
     af8  add [rax],eax

gemm_word_q8_1x2:
     b00  push rbx
     b01  push rbp
     b02  push r12
     b04  test rcx,rcx
     b07  je near 0000000000000F6Fh
     b0d  lea rax,[rel 0F77h]
     b14  mov rbp,rdx
     b17  lea r10,[rdi]
     b1a  mov r11,rsi
     b1d  mov rbx,rcx
     b20  vmovdqu ymm0,[r10+40h]
     b26  vmovdqu ymm1,[r10+60h]
     b2c  vpbroadcastd ymm3,[r11]
     b31  vpmaddwd ymm4,ymm0,ymm3
     b35  vpmaddwd ymm5,ymm1,ymm3
     b39  vpbroadcastd ymm3,[r11+40h]
     b3f  vpmaddwd ymm6,ymm0,ymm3
     b43  vpmaddwd ymm7,ymm1,ymm3
     b47  vmovdqu ymm0,[r10+80h]
     b50  vmovdqu ymm1,[r10+0A0h]
     b59  vpbroadcastd ymm3,[r11+4]
     b5f  vpmaddwd ymm2,ymm0,ymm3
     b63  vpmaddwd ymm3,ymm1,ymm3
     b67  vpaddd ymm4,ymm4,ymm2
     b6b  vpaddd ymm5,ymm5,ymm3
     b6f  vpbroadcastd ymm3,[r11+44h]
     b75  vpmaddwd ymm2,ymm0,ymm3
     b79  vpmaddwd ymm3,ymm1,ymm3
     b7d  vpaddd ymm6,ymm6,ymm2
     b81  vpaddd ymm7,ymm7,ymm3
     b85  vmovdqu ymm0,[r10+0C0h]
     b8e  vmovdqu ymm1,[r10+0E0h]
     b97  vpbroadcastd ymm3,[r11+8]
     b9d  vpmaddwd ymm2,ymm0,ymm3
     ba1  vpmaddwd ymm3,ymm1,ymm3
     ba5  vpaddd ymm4,ymm4,ymm2
     ba9  vpaddd ymm5,ymm5,ymm3
     bad  vpbroadcastd ymm3,[r11+48h]
     bb3  vpmaddwd ymm2,ymm0,ymm3
     bb7  vpmaddwd ymm3,ymm1,ymm3
     bbb  vpaddd ymm6,ymm6,ymm2
     bbf  vpaddd ymm7,ymm7,ymm3
     bc3  vmovdqu ymm0,[r10+100h]
     bcc  vmovdqu ymm1,[r10+120h]
     bd5  vpbroadcastd ymm3,[r11+0Ch]
     bdb  vpmaddwd ymm2,ymm0,ymm3
     bdf  vpmaddwd ymm3,ymm1,ymm3
     be3  vpaddd ymm4,ymm4,ymm2
     be7  vpaddd ymm5,ymm5,ymm3
     beb  vpbroadcastd ymm3,[r11+4Ch]
     bf1  vpmaddwd ymm2,ymm0,ymm3
     bf5  vpmaddwd ymm3,ymm1,ymm3
     bf9  vpaddd ymm6,ymm6,ymm2
     bfd  vpaddd ymm7,ymm7,ymm3
     c01  vmovdqu ymm0,[r10+140h]
     c0a  vmovdqu ymm1,[r10+160h]
     c13  vpbroadcastd ymm3,[r11+10h]
     c19  vpmaddwd ymm2,ymm0,ymm3
     c1d  vpmaddwd ymm3,ymm1,ymm3
     c21  vpaddd ymm4,ymm4,ymm2
     c25  vpaddd ymm5,ymm5,ymm3
     c29  vpbroadcastd ymm3,[r11+50h]
     c2f  vpmaddwd ymm2,ymm0,ymm3
     c33  vpmaddwd ymm3,ymm1,ymm3
     c37  vpaddd ymm6,ymm6,ymm2
     c3b  vpaddd ymm7,ymm7,ymm3
     c3f  vmovdqu ymm0,[r10+180h]
     c48  vmovdqu ymm1,[r10+1A0h]
     c51  vpbroadcastd ymm3,[r11+14h]
     c57  vpmaddwd ymm2,ymm0,ymm3
     c5b  vpmaddwd ymm3,ymm1,ymm3
     c5f  vpaddd ymm4,ymm4,ymm2
     c63  vpaddd ymm5,ymm5,ymm3
     c67  vpbroadcastd ymm3,[r11+54h]
     c6d  vpmaddwd ymm2,ymm0,ymm3
     c71  vpmaddwd ymm3,ymm1,ymm3
     c75  vpaddd ymm6,ymm6,ymm2
     c79  vpaddd ymm7,ymm7,ymm3
     c7d  vmovdqu ymm0,[r10+1C0h]
     c86  vmovdqu ymm1,[r10+1E0h]
     c8f  vpbroadcastd ymm3,[r11+18h]
     c95  vpmaddwd ymm2,ymm0,ymm3
     c99  vpmaddwd ymm3,ymm1,ymm3
     c9d  vpaddd ymm4,ymm4,ymm2
     ca1  vpaddd ymm5,ymm5,ymm3
     ca5  vpbroadcastd ymm3,[r11+58h]
     cab  vpmaddwd ymm2,ymm0,ymm3
     caf  vpmaddwd ymm3,ymm1,ymm3
     cb3  vpaddd ymm6,ymm6,ymm2
     cb7  vpaddd ymm7,ymm7,ymm3
     cbb  vmovdqu ymm0,[r10+200h]
     cc4  vmovdqu ymm1,[r10+220h]
     ccd  vpbroadcastd ymm3,[r11+1Ch]
     cd3  vpmaddwd ymm2,ymm0,ymm3
     cd7  vpmaddwd ymm3,ymm1,ymm3
     cdb  vpaddd ymm4,ymm4,ymm2
     cdf  vpaddd ymm5,ymm5,ymm3
     ce3  vpbroadcastd ymm3,[r11+5Ch]
     ce9  vpmaddwd ymm2,ymm0,ymm3
     ced  vpmaddwd ymm3,ymm1,ymm3
     cf1  vpaddd ymm6,ymm6,ymm2
     cf5  vpaddd ymm7,ymm7,ymm3
     cf9  vmovdqu ymm0,[r10+240h]
     d02  vmovdqu ymm1,[r10+260h]
     d0b  vpbroadcastd ymm3,[r11+20h]
     d11  vpmaddwd ymm2,ymm0,ymm3
     d15  vpmaddwd ymm3,ymm1,ymm3
     d19  vpaddd ymm4,ymm4,ymm2
     d1d  vpaddd ymm5,ymm5,ymm3
     d21  vpbroadcastd ymm3,[r11+60h]
     d27  vpmaddwd ymm2,ymm0,ymm3
     d2b  vpmaddwd ymm3,ymm1,ymm3
     d2f  vpaddd ymm6,ymm6,ymm2
     d33  vpaddd ymm7,ymm7,ymm3
     d37  vmovdqu ymm0,[r10+280h]
     d40  vmovdqu ymm1,[r10+2A0h]
     d49  vpbroadcastd ymm3,[r11+24h]
     d4f  vpmaddwd ymm2,ymm0,ymm3
     d53  vpmaddwd ymm3,ymm1,ymm3
     d57  vpaddd ymm4,ymm4,ymm2
     d5b  vpaddd ymm5,ymm5,ymm3
     d5f  vpbroadcastd ymm3,[r11+64h]
     d65  vpmaddwd ymm2,ymm0,ymm3
     d69  vpmaddwd ymm3,ymm1,ymm3
     d6d  vpaddd ymm6,ymm6,ymm2
     d71  vpaddd ymm7,ymm7,ymm3
     d75  vmovdqu ymm0,[r10+2C0h]
     d7e  vmovdqu ymm1,[r10+2E0h]
     d87  vpbroadcastd ymm3,[r11+28h]
     d8d  vpmaddwd ymm2,ymm0,ymm3
     d91  vpmaddwd ymm3,ymm1,ymm3
     d95  vpaddd ymm4,ymm4,ymm2
     d99  vpaddd ymm5,ymm5,ymm3
     d9d  vpbroadcastd ymm3,[r11+68h]
     da3  vpmaddwd ymm2,ymm0,ymm3
     da7  vpmaddwd ymm3,ymm1,ymm3
     dab  vpaddd ymm6,ymm6,ymm2
     daf  vpaddd ymm7,ymm7,ymm3
     db3  vmovdqu ymm0,[r10+300h]
     dbc  vmovdqu ymm1,[r10+320h]
     dc5  vpbroadcastd ymm3,[r11+2Ch]
     dcb  vpmaddwd ymm2,ymm0,ymm3
     dcf  vpmaddwd ymm3,ymm1,ymm3
     dd3  vpaddd ymm4,ymm4,ymm2
     dd7  vpaddd ymm5,ymm5,ymm3
     ddb  vpbroadcastd ymm3,[r11+6Ch]
     de1  vpmaddwd ymm2,ymm0,ymm3
     de5  vpmaddwd ymm3,ymm1,ymm3
     de9  vpaddd ymm6,ymm6,ymm2
     ded  vpaddd ymm7,ymm7,ymm3
     df1  vmovdqu ymm0,[r10+340h]
     dfa  vmovdqu ymm1,[r10+360h]
     e03  vpbroadcastd ymm3,[r11+30h]
     e09  vpmaddwd ymm2,ymm0,ymm3
     e0d  vpmaddwd ymm3,ymm1,ymm3
     e11  vpaddd ymm4,ymm4,ymm2
     e15  vpaddd ymm5,ymm5,ymm3
     e19  vpbroadcastd ymm3,[r11+70h]
     e1f  vpmaddwd ymm2,ymm0,ymm3
     e23  vpmaddwd ymm3,ymm1,ymm3
     e27  vpaddd ymm6,ymm6,ymm2
     e2b  vpaddd ymm7,ymm7,ymm3
     e2f  vmovdqu ymm0,[r10+380h]
     e38  vmovdqu ymm1,[r10+3A0h]
     e41  vpbroadcastd ymm3,[r11+34h]
     e47  vpmaddwd ymm2,ymm0,ymm3
     e4b  vpmaddwd ymm3,ymm1,ymm3
     e4f  vpaddd ymm4,ymm4,ymm2
     e53  vpaddd ymm5,ymm5,ymm3
     e57  vpbroadcastd ymm3,[r11+74h]
     e5d  vpmaddwd ymm2,ymm0,ymm3
     e61  vpmaddwd ymm3,ymm1,ymm3
     e65  vpaddd ymm6,ymm6,ymm2
     e69  vpaddd ymm7,ymm7,ymm3
     e6d  vmovdqu ymm0,[r10+3C0h]
     e76  vmovdqu ymm1,[r10+3E0h]
     e7f  vpbroadcastd ymm3,[r11+38h]
     e85  vpmaddwd ymm2,ymm0,ymm3
     e89  vpmaddwd ymm3,ymm1,ymm3
     e8d  vpaddd ymm4,ymm4,ymm2
     e91  vpaddd ymm5,ymm5,ymm3
     e95  vpbroadcastd ymm3,[r11+78h]
     e9b  vpmaddwd ymm2,ymm0,ymm3
     e9f  vpmaddwd ymm3,ymm1,ymm3
     ea3  vpaddd ymm6,ymm6,ymm2
     ea7  vpaddd ymm7,ymm7,ymm3
     eab  vmovdqu ymm0,[r10+400h]
     eb4  vmovdqu ymm1,[r10+420h]
     ebd  vpbroadcastd ymm3,[r11+3Ch]
     ec3  vpmaddwd ymm2,ymm0,ymm3
     ec7  vpmaddwd ymm3,ymm1,ymm3
     ecb  vpaddd ymm4,ymm4,ymm2
     ecf  vpaddd ymm5,ymm5,ymm3
     ed3  vpbroadcastd ymm3,[r11+7Ch]
     ed9  vpmaddwd ymm2,ymm0,ymm3
     edd  vpmaddwd ymm3,ymm1,ymm3
     ee1  vpaddd ymm6,ymm6,ymm2
     ee5  vpaddd ymm7,ymm7,ymm3
     ee9  vmovups ymm0,[r10]
     eee  vmovups ymm1,[r10+20h]
     ef4  vbroadcastss ymm3,[r11+180h]
     efd  vcvtdq2ps ymm4,ymm4
     f01  vmulps ymm4,ymm4,ymm0
     f05  vfmadd213ps ymm4,ymm3,[rbp]
     f0b  vmovups [rbp],ymm4
     f10  vcvtdq2ps ymm5,ymm5
     f14  vmulps ymm5,ymm5,ymm1
     f18  vfmadd213ps ymm5,ymm3,[rbp+20h]
     f1e  vmovups [rbp+20h],ymm5
     f23  vbroadcastss ymm3,[r11+184h]
     f2c  vcvtdq2ps ymm6,ymm6
     f30  vmulps ymm6,ymm6,ymm0
     f34  vfmadd213ps ymm6,ymm3,[rbp+r8]
     f3b  vmovups [rbp+r8],ymm6
     f42  vcvtdq2ps ymm7,ymm7
     f46  vmulps ymm7,ymm7,ymm1
     f4a  vfmadd213ps ymm7,ymm3,[rbp+r8+20h]
     f51  vmovups [rbp+r8+20h],ymm7
     f58  add r10,440h
     f5f  add r11,1C0h
     f66  dec rbx
     f69  jne near 0000000000000B20h
     f6f  vzeroupper
     f72  pop r12
     f74  pop rbp
     f75  pop rbx
     f76  ret
     f77  add [rax],eax
     f79  add [rax],eax

decode_int8_words:
     f80  lea r8,[rel 1240h]
     f87  vmovdqu ymm0,[r8+60h]
     f8d  test rcx,rcx
     f90  je near 0000000000001222h
     f96  vcvtph2ps ymm5,[rdi]
     f9b  vmovups [rdx],ymm5
     f9f  vcvtph2ps ymm5,[rdi+10h]
     fa5  vmovups [rdx+20h],ymm5
     faa  vpxor ymm3,ymm0,[rsi]
     fae  vpsllw ymm1,ymm3,8
     fb3  vpsraw ymm1,ymm1,8
     fb8  vpsraw ymm3,ymm3,8
     fbd  vmovdqu [rdx+40h],ymm1
     fc2  vmovdqu [rdx+240h],ymm3
     fca  vpxor ymm4,ymm0,[rsi+20h]
     fcf  vpsllw ymm2,ymm4,8
     fd4  vpsraw ymm2,ymm2,8
     fd9  vpsraw ymm4,ymm4,8
     fde  vmovdqu [rdx+60h],ymm2
     fe3  vmovdqu [rdx+260h],ymm4
     feb  vpxor ymm3,ymm0,[rsi+40h]
     ff0  vpsllw ymm1,ymm3,8
     ff5  vpsraw ymm1,ymm1,8
     ffa  vpsraw ymm3,ymm3,8
     fff  vmovdqu [rdx+80h],ymm1
    1007  vmovdqu [rdx+280h],ymm3
    100f  vpxor ymm4,ymm0,[rsi+60h]
    1014  vpsllw ymm2,ymm4,8
    1019  vpsraw ymm2,ymm2,8
    101e  vpsraw ymm4,ymm4,8
    1023  vmovdqu [rdx+0A0h],ymm2
    102b  vmovdqu [rdx+2A0h],ymm4
    1033  vpxor ymm3,ymm0,[rsi+80h]
    103b  vpsllw ymm1,ymm3,8
    1040  vpsraw ymm1,ymm1,8
    1045  vpsraw ymm3,ymm3,8
    104a  vmovdqu [rdx+0C0h],ymm1
    1052  vmovdqu [rdx+2C0h],ymm3
    105a  vpxor ymm4,ymm0,[rsi+0A0h]
    1062  vpsllw ymm2,ymm4,8
    1067  vpsraw ymm2,ymm2,8
    106c  vpsraw ymm4,ymm4,8
    1071  vmovdqu [rdx+0E0h],ymm2
    1079  vmovdqu [rdx+2E0h],ymm4
    1081  vpxor ymm3,ymm0,[rsi+0C0h]
    1089  vpsllw ymm1,ymm3,8
    108e  vpsraw ymm1,ymm1,8
    1093  vpsraw ymm3,ymm3,8
    1098  vmovdqu [rdx+100h],ymm1
    10a0  vmovdqu [rdx+300h],ymm3
    10a8  vpxor ymm4,ymm0,[rsi+0E0h]
    10b0  vpsllw ymm2,ymm4,8
    10b5  vpsraw ymm2,ymm2,8
    10ba  vpsraw ymm4,ymm4,8
    10bf  vmovdqu [rdx+120h],ymm2
    10c7  vmovdqu [rdx+320h],ymm4
    10cf  vpxor ymm3,ymm0,[rsi+100h]
    10d7  vpsllw ymm1,ymm3,8
    10dc  vpsraw ymm1,ymm1,8
    10e1  vpsraw ymm3,ymm3,8
    10e6  vmovdqu [rdx+140h],ymm1
    10ee  vmovdqu [rdx+340h],ymm3
    10f6  vpxor ymm4,ymm0,[rsi+120h]
    10fe  vpsllw ymm2,ymm4,8
    1103  vpsraw ymm2,ymm2,8
    1108  vpsraw ymm4,ymm4,8
    110d  vmovdqu [rdx+160h],ymm2
    1115  vmovdqu [rdx+360h],ymm4
    111d  vpxor ymm3,ymm0,[rsi+140h]
    1125  vpsllw ymm1,ymm3,8
    112a  vpsraw ymm1,ymm1,8
    112f  vpsraw ymm3,ymm3,8
    1134  vmovdqu [rdx+180h],ymm1
    113c  vmovdqu [rdx+380h],ymm3
    1144  vpxor ymm4,ymm0,[rsi+160h]
    114c  vpsllw ymm2,ymm4,8
    1151  vpsraw ymm2,ymm2,8
    1156  vpsraw ymm4,ymm4,8
    115b  vmovdqu [rdx+1A0h],ymm2
    1163  vmovdqu [rdx+3A0h],ymm4
    116b  vpxor ymm3,ymm0,[rsi+180h]
    1173  vpsllw ymm1,ymm3,8
    1178  vpsraw ymm1,ymm1,8
    117d  vpsraw ymm3,ymm3,8
    1182  vmovdqu [rdx+1C0h],ymm1
    118a  vmovdqu [rdx+3C0h],ymm3
    1192  vpxor ymm4,ymm0,[rsi+1A0h]
    119a  vpsllw ymm2,ymm4,8
    119f  vpsraw ymm2,ymm2,8
    11a4  vpsraw ymm4,ymm4,8
    11a9  vmovdqu [rdx+1E0h],ymm2
    11b1  vmovdqu [rdx+3E0h],ymm4
    11b9  vpxor ymm3,ymm0,[rsi+1C0h]
    11c1  vpsllw ymm1,ymm3,8
    11c6  vpsraw ymm1,ymm1,8
    11cb  vpsraw ymm3,ymm3,8
    11d0  vmovdqu [rdx+200h],ymm1
    11d8  vmovdqu [rdx+400h],ymm3
    11e0  vpxor ymm4,ymm0,[rsi+1E0h]
    11e8  vpsllw ymm2,ymm4,8
    11ed  vpsraw ymm2,ymm2,8
    11f2  vpsraw ymm4,ymm4,8
    11f7  vmovdqu [rdx+220h],ymm2
    11ff  vmovdqu [rdx+420h],ymm4
    1207  add rdi,20h
    120b  add rsi,200h
    1212  add rdx,440h
    1219  dec rcx
    121c  jne near 0000000000000F96h
    1222  vzeroupper
    1225  ret
    1226  add [rax],al
    1228  add [rax],al
    122a  add [rax],al
    122c  add [rax],al
    122e  add [rax],al
    1230  add [rax],al
    1232  add [rax],al
    1234  add [rax],al
    1236  add [rax],al
    1238  add [rax],al
    123a  add [rax],al
    123c  add [rax],al
    123e  add [rax],al
    1240  (bad)
    1244  (bad)
    1248  (bad)
    124c  (bad)
    1250  (bad)
    1254  (bad)
    1258  (bad)
    125c  (bad)
    1260  or al,0Dh
    1262  (bad)
    1264  adc [rdx],dl
    1266  adc al,18h
    1268  or al,0Bh
    126a  or cl,[rcx]
    126c  or [rsi],al
    126e  add al,0
    1270  or al,0Dh
    1272  (bad)
    1274  adc [rdx],dl
    1276  adc al,18h
    1278  or al,0Bh
    127a  or cl,[rcx]
    127c  or [rsi],al
    127e  add al,0
    1280  add [rax],eax
    1282  add [rax],eax
    1284  add [rax],eax
    1286  add [rax],eax
    1288  add [rax],eax
    128a  add [rax],eax
    128c  add [rax],eax
    128e  add [rax],eax
    1290  add [rax],eax
    1292  add [rax],eax
    1294  add [rax],eax
    1296  add [rax],eax
    1298  add [rax],eax
    129a  add [rax],eax
    129c  add [rax],eax
    129e  add [rax],eax
    12a0  add byte [rax-7F7F7F80h],80h
    12a7  add byte [rax-7F7F7F80h],80h
    12ae  add byte [rax-7F7F7F80h],80h
    12b5  add byte [rax-7F7F7F80h],80h
    12bc  add byte [rax+8080h],40h
    12c3  add [rax],al
    12c5  add [rax],al
    12c8  add [rax],al
    12ca  add [rax],al
    12cd  add [rax],al
    12d0  add [rax],al
    12d2  add [rax],al
    12d5  add [rax],al
    12d8  add [rax],al
    12da  add [rax],al
    12dd  add [rax],al
    12e0  add [rax],al
    12e2  add [rdi],bh
    12e4  add [rax],al
    12e6  add [rdi],bh
    12e8  add [rax],al
    12ea  add [rdi],bh
    12ec  add [rax],al
    12ee  add [rdi],bh
    12f0  add [rax],al
    12f2  add [rdi],bh
    12f4  add [rax],al
    12f6  add [rdi],bh
    12f8  add [rax],al
    12fa  add [rdi],bh
    12fc  add [rax],al
    12fe  add [rdi],bh
    1300  cmp bh,0FFh
    1303  inc dword [rax-7F000001h]
    1309  (bad)
    130b  inc dword [rax-7F000001h]
    1311  (bad)
    1313  inc dword [rax-7F000001h]
    1319  (bad)
    131b  inc dword [rax+0FFFFFFh]
    1321  add [rax-35h],al
    1324  add [rax],al
    1326  retf
    1328  add [rax],al
    132a  retf
    132c  add [rax],al
    132e  retf
    1330  add [rax],al
    1332  retf
    1334  add [rax],al
    1336  retf
    1338  add [rax],al
    133a  retf
    133c  add [rax],al
    133e  retf

decode_mxfp4:
    1340  lea r8,[rel 1580h]
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
    1550  add [rax],al
    1552  add [rax],al
    1554  add [rax],al
    1556  add [rax],al
    1558  add [rax],al
    155a  add [rax],al
    155c  add [rax],al
    155e  add [rax],al
    1560  add [rax],al
    1562  add [rax],al
    1564  add [rax],al
    1566  add [rax],al
    1568  add [rax],al
    156a  add [rax],al
    156c  add [rax],al
    156e  add [rax],al
    1570  add [rax],al
    1572  add [rax],al
    1574  add [rax],al
    1576  add [rax],al
    1578  add [rax],al
    157a  add [rax],al
    157c  add [rax],al
    157e  add [rax],al
    1580  (bad)
    1584  (bad)
    1588  (bad)
    158c  (bad)
    1590  (bad)
    1594  (bad)
    1598  (bad)
    159c  (bad)
    15a0  or al,0Dh
    15a2  (bad)
    15a4  adc [rdx],dl
    15a6  adc al,18h
    15a8  or al,0Bh
    15aa  or cl,[rcx]
    15ac  or [rsi],al
    15ae  add al,0
    15b0  or al,0Dh
    15b2  (bad)
    15b4  adc [rdx],dl
    15b6  adc al,18h
    15b8  or al,0Bh
    15ba  or cl,[rcx]
    15bc  or [rsi],al
    15be  add al,0
    15c0  add [rax],eax
    15c2  add [rax],eax
    15c4  add [rax],eax
    15c6  add [rax],eax
    15c8  add [rax],eax
    15ca  add [rax],eax
    15cc  add [rax],eax
    15ce  add [rax],eax
    15d0  add [rax],eax
    15d2  add [rax],eax
    15d4  add [rax],eax
    15d6  add [rax],eax
    15d8  add [rax],eax
    15da  add [rax],eax
    15dc  add [rax],eax
    15de  add [rax],eax
    15e0  add byte [rax-7F7F7F80h],80h
    15e7  add byte [rax-7F7F7F80h],80h
    15ee  add byte [rax-7F7F7F80h],80h
    15f5  add byte [rax-7F7F7F80h],80h
    15fc  add byte [rax+8080h],40h
    1603  add [rax],al
    1605  add [rax],al
    1608  add [rax],al
    160a  add [rax],al
    160d  add [rax],al
    1610  add [rax],al
    1612  add [rax],al
    1615  add [rax],al
    1618  add [rax],al
    161a  add [rax],al
    161d  add [rax],al
    1620  add [rax],al
    1622  add [rdi],bh
    1624  add [rax],al
    1626  add [rdi],bh
    1628  add [rax],al
    162a  add [rdi],bh
    162c  add [rax],al
    162e  add [rdi],bh
    1630  add [rax],al
    1632  add [rdi],bh
    1634  add [rax],al
    1636  add [rdi],bh
    1638  add [rax],al
    163a  add [rdi],bh
    163c  add [rax],al
    163e  add [rdi],bh
    1640  hlt
    1641  (bad)
    1643  push rsp
    1645  (bad)
    1647  push rsp
    1649  (bad)
    164b  push rsp
    164d  (bad)
    164f  push rsp
    1651  (bad)
    1653  push rsp
    1655  (bad)
    1657  push rsp
    1659  (bad)
    165b  push rsp
    165d  (bad)
    165f  inc dword [rax]
    1661  add [rax-35h],al
    1664  add [rax],al
    1666  retf
    1668  add [rax],al
    166a  retf
    166c  add [rax],al
    166e  retf
    1670  add [rax],al
    1672  retf
    1674  add [rax],al
    1676  retf
    1678  add [rax],al
    167a  retf
    167c  add [rax],al
    167e  retf

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
    16de  vpand ymm1,ymm1,[rel 17C0h]
    16e6  vmovups ymm2,[r9+20h]
    16ec  vpand ymm2,ymm2,[rel 17C0h]
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
    1732  vpand ymm1,ymm1,[rel 17C0h]
    173a  vmovups ymm2,[r9+60h]
    1740  vpand ymm2,ymm2,[rel 17C0h]
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
    17a5  add [rax],al
    17a7  add [rax],al
    17a9  add [rax],al
    17ab  add [rax],al
    17ad  add [rax],al
    17af  add [rax],al
    17b1  add [rax],al
    17b3  add [rax],al
    17b5  add [rax],al
    17b7  add [rax],al
    17b9  add [rax],al
    17bb  add [rax],al
    17bd  add [rax],al
    17bf  add [rax],al
    17c1  add bh,bh
    17c3  inc dword [rax]
    17c5  add bh,bh
    17c7  inc dword [rax]
    17c9  add bh,bh
    17cb  inc dword [rax]
    17cd  add bh,bh
    17cf  inc dword [rax]
    17d1  add bh,bh
    17d3  inc dword [rax]
    17d5  add bh,bh
    17d7  inc dword [rax]
    17d9  add bh,bh
    17db  inc dword [rax]
    17dd  add bh,bh
    17df  (bad)

dot_int4_f32_k64_t1:
    1800  push rbx
    1801  mov rbx,[rsi]
    1804  lea r11,[rel 2100h]
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
    185b  vpsubb ymm1,ymm1,[rel 2200h]
    1863  vpsubb ymm2,ymm2,[rel 2200h]
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
    1965  vpsubb ymm1,ymm1,[rel 2200h]
    196d  vpsubb ymm2,ymm2,[rel 2200h]
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
    1a6f  vpsubb ymm1,ymm1,[rel 2200h]
    1a77  vpsubb ymm2,ymm2,[rel 2200h]
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
    1b7a  vpsubb ymm1,ymm1,[rel 2200h]
    1b82  vpsubb ymm2,ymm2,[rel 2200h]
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
    1c88  vpsubb ymm1,ymm1,[rel 2200h]
    1c90  vpsubb ymm2,ymm2,[rel 2200h]
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
    1d96  vpsubb ymm1,ymm1,[rel 2200h]
    1d9e  vpsubb ymm2,ymm2,[rel 2200h]
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
    1ea4  vpsubb ymm1,ymm1,[rel 2200h]
    1eac  vpsubb ymm2,ymm2,[rel 2200h]
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
    1fb2  vpsubb ymm1,ymm1,[rel 2200h]
    1fba  vpsubb ymm2,ymm2,[rel 2200h]
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
    20f9  add [rax],al
    20fb  add [rax],al
    20fd  add [rax],al
    20ff  add [rdi],cl
    2101  (bad)
    2105  (bad)
    2109  (bad)
    210d  (bad)
    2111  (bad)
    2115  (bad)
    2119  (bad)
    211d  pi2fw mm1,[rdi]
    2121  or eax,12100F0Eh
    2126  adc al,18h
    2128  or al,0Bh
    212a  or cl,[rcx]
    212c  or [rsi],al
    212e  add al,0
    2130  or al,0Dh
    2132  (bad)
    2134  adc [rdx],dl
    2136  adc al,18h
    2138  or al,0Bh
    213a  or cl,[rcx]
    213c  or [rsi],al
    213e  add al,0
    2140  add [rax],eax
    2142  add [rax],eax
    2144  add [rax],eax
    2146  add [rax],eax
    2148  add [rax],eax
    214a  add [rax],eax
    214c  add [rax],eax
    214e  add [rax],eax
    2150  add [rax],eax
    2152  add [rax],eax
    2154  add [rax],eax
    2156  add [rax],eax
    2158  add [rax],eax
    215a  add [rax],eax
    215c  add [rax],eax
    215e  add [rax],eax
    2160  add byte [rax-7F7F7F80h],80h
    2167  add byte [rax-7F7F7F80h],80h
    216e  add byte [rax-7F7F7F80h],80h
    2175  add byte [rax-7F7F7F80h],80h
    217c  add byte [rax+8080h],40h
    2183  add [rax],al
    2185  add [rax],al
    2188  add [rax],al
    218a  add [rax],al
    218d  add [rax],al
    2190  add [rax],al
    2192  add [rax],al
    2195  add [rax],al
    2198  add [rax],al
    219a  add [rax],al
    219d  add [rax],al
    21a0  add [rax],al
    21a2  add [rdi],bh
    21a4  add [rax],al
    21a6  add [rdi],bh
    21a8  add [rax],al
    21aa  add [rdi],bh
    21ac  add [rax],al
    21ae  add [rdi],bh
    21b0  add [rax],al
    21b2  add [rdi],bh
    21b4  add [rax],al
    21b6  add [rdi],bh
    21b8  add [rax],al
    21ba  add [rdi],bh
    21bc  add [rax],al
    21be  add [rdi],bh
    21c0  clc
    21c1  (bad)
    21c3  (bad)
    21c5  (bad)
    21c7  (bad)
    21c9  (bad)
    21cb  (bad)
    21cd  (bad)
    21cf  (bad)
    21d1  (bad)
    21d3  (bad)
    21d5  (bad)
    21d7  (bad)
    21d9  (bad)
    21db  (bad)
    21dd  (bad)
    21df  inc dword [rax]
    21e1  add [rax-35h],al
    21e4  add [rax],al
    21e6  retf
    21e8  add [rax],al
    21ea  retf
    21ec  add [rax],al
    21ee  retf
    21f0  add [rax],al
    21f2  retf
    21f4  add [rax],al
    21f6  retf
    21f8  add [rax],al
    21fa  retf
    21fc  add [rax],al
    21fe  retf
    2200  or [rax],cl
    2202  or [rax],cl
    2204  or [rax],cl
    2206  or [rax],cl
    2208  or [rax],cl
    220a  or [rax],cl
    220c  or [rax],cl
    220e  or [rax],cl
    2210  or [rax],cl
    2212  or [rax],cl
    2214  or [rax],cl
    2216  or [rax],cl
    2218  or [rax],cl
    221a  or [rax],cl
    221c  or [rax],cl
    221e  or [rax],cl

score_F16_d32_g2_s3e000000:
    2240  cmp rcx,1
    2244  jl near 00000000000024A1h
    224a  mov r8,[rdi]
    224d  mov r9,[rdi+40h]
    2251  prefetcht1 [r9]
    2255  prefetcht1 [r9+40h]
    225a  prefetcht1 [r9+80h]
    2262  prefetcht1 [r9+0C0h]
    226a  prefetcht1 [r9+100h]
    2272  prefetcht1 [r9+140h]
    227a  prefetcht1 [r9+180h]
    2282  prefetcht1 [r9+1C0h]
    228a  vpxor ymm3,ymm3,ymm3
    228e  vpxor ymm4,ymm4,ymm4
    2292  vpxor ymm5,ymm5,ymm5
    2296  vpxor ymm6,ymm6,ymm6
    229a  vpxor ymm7,ymm7,ymm7
    229e  vpxor ymm8,ymm8,ymm8
    22a3  vpxor ymm9,ymm9,ymm9
    22a8  vpxor ymm10,ymm10,ymm10
    22ad  xor r10,r10
    22b0  xor r11,r11
    22b3  vcvtph2ps ymm0,[r8+r10]
    22b9  vcvtph2ps ymm1,[r8+r10+10h]
    22c0  vbroadcastss ymm2,[rsi+r11]
    22c6  vfmadd231ps ymm3,ymm0,ymm2
    22cb  vfmadd231ps ymm4,ymm1,ymm2
    22d0  vbroadcastss ymm2,[rsi+r11+80h]
    22da  vfmadd231ps ymm5,ymm0,ymm2
    22df  vfmadd231ps ymm6,ymm1,ymm2
    22e4  vcvtph2ps ymm0,[r8+r10+20h]
    22eb  vcvtph2ps ymm1,[r8+r10+30h]
    22f2  vbroadcastss ymm2,[rsi+r11+4]
    22f9  vfmadd231ps ymm7,ymm0,ymm2
    22fe  vfmadd231ps ymm8,ymm1,ymm2
    2303  vbroadcastss ymm2,[rsi+r11+84h]
    230d  vfmadd231ps ymm9,ymm0,ymm2
    2312  vfmadd231ps ymm10,ymm1,ymm2
    2317  add r10,80h
    231e  add r11,10h
    2322  cmp r11,80h
    2329  jne short 00000000000022B3h
    232b  vaddps ymm11,ymm3,ymm7
    232f  vaddps ymm12,ymm4,ymm8
    2334  vaddps ymm13,ymm5,ymm9
    2339  vaddps ymm14,ymm6,ymm10
    233e  prefetcht1 [r9+200h]
    2346  prefetcht1 [r9+240h]
    234e  prefetcht1 [r9+280h]
    2356  prefetcht1 [r9+2C0h]
    235e  prefetcht1 [r9+300h]
    2366  prefetcht1 [r9+340h]
    236e  prefetcht1 [r9+380h]
    2376  prefetcht1 [r9+3C0h]
    237e  vpxor ymm3,ymm3,ymm3
    2382  vpxor ymm4,ymm4,ymm4
    2386  vpxor ymm5,ymm5,ymm5
    238a  vpxor ymm6,ymm6,ymm6
    238e  vpxor ymm7,ymm7,ymm7
    2392  vpxor ymm8,ymm8,ymm8
    2397  vpxor ymm9,ymm9,ymm9
    239c  vpxor ymm10,ymm10,ymm10
    23a1  xor r10,r10
    23a4  xor r11,r11
    23a7  vcvtph2ps ymm0,[r8+r10+40h]
    23ae  vcvtph2ps ymm1,[r8+r10+50h]
    23b5  vbroadcastss ymm2,[rsi+r11+8]
    23bc  vfmadd231ps ymm3,ymm0,ymm2
    23c1  vfmadd231ps ymm4,ymm1,ymm2
    23c6  vbroadcastss ymm2,[rsi+r11+88h]
    23d0  vfmadd231ps ymm5,ymm0,ymm2
    23d5  vfmadd231ps ymm6,ymm1,ymm2
    23da  vcvtph2ps ymm0,[r8+r10+60h]
    23e1  vcvtph2ps ymm1,[r8+r10+70h]
    23e8  vbroadcastss ymm2,[rsi+r11+0Ch]
    23ef  vfmadd231ps ymm7,ymm0,ymm2
    23f4  vfmadd231ps ymm8,ymm1,ymm2
    23f9  vbroadcastss ymm2,[rsi+r11+8Ch]
    2403  vfmadd231ps ymm9,ymm0,ymm2
    2408  vfmadd231ps ymm10,ymm1,ymm2
    240d  add r10,80h
    2414  add r11,10h
    2418  cmp r11,80h
    241f  jne short 00000000000023A7h
    2421  vaddps ymm3,ymm3,ymm7
    2425  vaddps ymm3,ymm11,ymm3
    2429  vbroadcastss ymm2,[rel 24A5h]
    2432  vmulps ymm3,ymm3,ymm2
    2436  vmovups [rdx],ymm3
    243a  vaddps ymm4,ymm4,ymm8
    243f  vaddps ymm4,ymm12,ymm4
    2443  vbroadcastss ymm2,[rel 24A5h]
    244c  vmulps ymm4,ymm4,ymm2
    2450  vmovups [rdx+20h],ymm4
    2455  vaddps ymm5,ymm5,ymm9
    245a  vaddps ymm5,ymm13,ymm5
    245e  vbroadcastss ymm2,[rel 24A5h]
    2467  vmulps ymm5,ymm5,ymm2
    246b  vmovups [rdx+1040h],ymm5
    2473  vaddps ymm6,ymm6,ymm10
    2478  vaddps ymm6,ymm14,ymm6
    247c  vbroadcastss ymm2,[rel 24A5h]
    2485  vmulps ymm6,ymm6,ymm2
    2489  vmovups [rdx+1060h],ymm6
    2491  add rdi,8
    2495  add rdx,40h
    2499  dec rcx
    249c  jmp 0000000000002240h
    24a1  vzeroupper
    24a4  ret
    24a5  add [rax],al
    24a7  add [rsi],bh

value_F16_d32_g2:
    24c0  push rbx
    24c1  push rbp
    24c2  push r12
    24c4  push r13
    24c6  cmp r8,r9
    24c9  jge near 000000000000268Bh
    24cf  vmovups ymm3,[rdx]
    24d3  vmovups ymm4,[rdx+20h]
    24d8  vmovups ymm5,[rdx+80h]
    24e0  vmovups ymm6,[rdx+0A0h]
    24e8  imul r13,r8,40h
    24ec  mov rbx,r8
    24ef  xor r12,r12
    24f2  xor rbp,rbp
    24f5  mov r10,[rdi+r12*8]
    24f9  add r10,r13
    24fc  xor r13,r13
    24ff  mov r11,[rdi+r12*8+40h]
    2504  prefetcht1 [r11]
    2508  prefetcht1 [r11+40h]
    250d  prefetcht1 [r11+80h]
    2515  prefetcht1 [r11+0C0h]
    251d  prefetcht1 [r11+100h]
    2525  prefetcht1 [r11+140h]
    252d  prefetcht1 [r11+180h]
    2535  prefetcht1 [r11+1C0h]
    253d  add rbp,10h
    2541  cmp rbp,r9
    2544  cmovg rbp,r9
    2548  vcvtph2ps ymm1,[r10]
    254d  vcvtph2ps ymm2,[r10+10h]
    2553  vbroadcastss ymm0,[rsi+rbx*4]
    2559  vfmadd231ps ymm3,ymm1,ymm0
    255e  vfmadd231ps ymm4,ymm2,ymm0
    2563  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    256d  vfmadd231ps ymm5,ymm1,ymm0
    2572  vfmadd231ps ymm6,ymm2,ymm0
    2577  add r10,40h
    257b  inc rbx
    257e  cmp rbx,rbp
    2581  jl short 0000000000002548h
    2583  inc r12
    2586  cmp r12,rcx
    2589  jl near 00000000000024F5h
    258f  vmovups [rdx],ymm3
    2593  vmovups [rdx+20h],ymm4
    2598  vmovups [rdx+80h],ymm5
    25a0  vmovups [rdx+0A0h],ymm6
    25a8  vmovups ymm3,[rdx+40h]
    25ad  vmovups ymm4,[rdx+60h]
    25b2  vmovups ymm5,[rdx+0C0h]
    25ba  vmovups ymm6,[rdx+0E0h]
    25c2  imul r13,r8,40h
    25c6  mov rbx,r8
    25c9  xor r12,r12
    25cc  xor rbp,rbp
    25cf  mov r10,[rdi+r12*8]
    25d3  add r10,r13
    25d6  xor r13,r13
    25d9  mov r11,[rdi+r12*8+40h]
    25de  prefetcht1 [r11+200h]
    25e6  prefetcht1 [r11+240h]
    25ee  prefetcht1 [r11+280h]
    25f6  prefetcht1 [r11+2C0h]
    25fe  prefetcht1 [r11+300h]
    2606  prefetcht1 [r11+340h]
    260e  prefetcht1 [r11+380h]
    2616  prefetcht1 [r11+3C0h]
    261e  add rbp,10h
    2622  cmp rbp,r9
    2625  cmovg rbp,r9
    2629  vcvtph2ps ymm1,[r10+20h]
    262f  vcvtph2ps ymm2,[r10+30h]
    2635  vbroadcastss ymm0,[rsi+rbx*4]
    263b  vfmadd231ps ymm3,ymm1,ymm0
    2640  vfmadd231ps ymm4,ymm2,ymm0
    2645  vbroadcastss ymm0,[rsi+rbx*4+1040h]
    264f  vfmadd231ps ymm5,ymm1,ymm0
    2654  vfmadd231ps ymm6,ymm2,ymm0
    2659  add r10,40h
    265d  inc rbx
    2660  cmp rbx,rbp
    2663  jl short 0000000000002629h
    2665  inc r12
    2668  cmp r12,rcx
    266b  jl near 00000000000025CFh
    2671  vmovups [rdx+40h],ymm3
    2676  vmovups [rdx+60h],ymm4
    267b  vmovups [rdx+0C0h],ymm5
    2683  vmovups [rdx+0E0h],ymm6
    268b  vzeroupper
    268e  pop r13
    2690  pop r12
    2692  pop rbp
    2693  pop rbx
    2694  ret

softmax:
    26c0  push rbx
    26c1  cmp rsi,1
    26c5  jl near 000000000000294Eh
    26cb  lea r10,[rel 2980h]
    26d2  imul rbx,rsi,40h
    26d6  mov rax,rdx
    26d9  xor r11,r11
    26dc  vmovd xmm5,eax
    26e0  vpbroadcastd ymm5,xmm5
    26e5  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    26ee  vmovups ymm6,[rdi+r11]
    26f4  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    26fe  vmovups [rdi+r11],ymm6
    2704  vpcmpgtd ymm7,ymm5,[r10+200h]
    270d  vmovups ymm6,[rdi+r11+20h]
    2714  vblendvps ymm6,ymm6,[r10+1C0h],ymm7
    271e  vmovups [rdi+r11+20h],ymm6
    2725  imul r11,rsi,10h
    2729  mov rax,rcx
    272c  sub rax,r11
    272f  add rax,10h
    2735  mov r11,rbx
    2738  sub r11,40h
    273c  vmovd xmm5,eax
    2740  vpbroadcastd ymm5,xmm5
    2745  vpcmpgtd ymm7,ymm5,[r10+1E0h]
    274e  vmovups ymm6,[r10+1C0h]
    2757  vblendvps ymm6,ymm6,[rdi+r11],ymm7
    275e  vmovups [rdi+r11],ymm6
    2764  vpcmpgtd ymm7,ymm5,[r10+200h]
    276d  vmovups ymm6,[r10+1C0h]
    2776  vblendvps ymm6,ymm6,[rdi+r11+20h],ymm7
    277e  vmovups [rdi+r11+20h],ymm6
    2785  vmovups ymm0,[r10+1C0h]
    278e  vmovups ymm1,[r10+1C0h]
    2797  xor r11,r11
    279a  vmovups ymm4,[rdi+r11]
    27a0  vmaxps ymm0,ymm4,ymm0
    27a4  vmovups ymm4,[rdi+r11+20h]
    27ab  vmaxps ymm1,ymm4,ymm1
    27af  add r11,40h
    27b3  cmp r11,rbx
    27b6  jl short 000000000000279Ah
    27b8  vmaxps ymm0,ymm1,ymm0
    27bc  vperm2f128 ymm4,ymm0,ymm0,1
    27c2  vmaxps ymm0,ymm4,ymm0
    27c6  vpshufd ymm4,ymm0,4Eh
    27cb  vmaxps ymm0,ymm4,ymm0
    27cf  vpshufd ymm4,ymm0,0B1h
    27d4  vmaxps ymm0,ymm4,ymm0
    27d8  vmovss [r8],xmm0
    27dd  vpxor ymm2,ymm2,ymm2
    27e1  vpxor ymm3,ymm3,ymm3
    27e5  xor r11,r11
    27e8  vmovups ymm4,[rdi+r11]
    27ee  vsubps ymm4,ymm4,ymm0
    27f2  vcmpltps ymm7,ymm4,[r10+0A0h]
    27fc  vminps ymm4,ymm4,[r10]
    2801  vmovups ymm5,[r10+20h]
    2807  vfmadd213ps ymm5,ymm4,[r10+40h]
    280d  vsubps ymm6,ymm5,[r10+40h]
    2813  vfmadd231ps ymm4,ymm6,[r10+60h]
    2819  vfmadd231ps ymm4,ymm6,[r10+80h]
    2822  vmovups ymm6,[r10+0C0h]
    282b  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    2834  vfmadd213ps ymm6,ymm4,[r10+100h]
    283d  vfmadd213ps ymm6,ymm4,[r10+120h]
    2846  vfmadd213ps ymm6,ymm4,[r10+140h]
    284f  vfmadd213ps ymm6,ymm4,[r10+160h]
    2858  vfmadd213ps ymm6,ymm4,[r10+180h]
    2861  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    286a  vpslld ymm5,ymm5,17h
    286f  vpaddd ymm6,ymm6,ymm5
    2873  vandnps ymm4,ymm7,ymm6
    2877  vmovups [rdi+r11],ymm4
    287d  vaddps ymm2,ymm2,ymm4
    2881  vmovups ymm4,[rdi+r11+20h]
    2888  vsubps ymm4,ymm4,ymm0
    288c  vcmpltps ymm7,ymm4,[r10+0A0h]
    2896  vminps ymm4,ymm4,[r10]
    289b  vmovups ymm5,[r10+20h]
    28a1  vfmadd213ps ymm5,ymm4,[r10+40h]
    28a7  vsubps ymm6,ymm5,[r10+40h]
    28ad  vfmadd231ps ymm4,ymm6,[r10+60h]
    28b3  vfmadd231ps ymm4,ymm6,[r10+80h]
    28bc  vmovups ymm6,[r10+0C0h]
    28c5  vfmadd213ps ymm6,ymm4,[r10+0E0h]
    28ce  vfmadd213ps ymm6,ymm4,[r10+100h]
    28d7  vfmadd213ps ymm6,ymm4,[r10+120h]
    28e0  vfmadd213ps ymm6,ymm4,[r10+140h]
    28e9  vfmadd213ps ymm6,ymm4,[r10+160h]
    28f2  vfmadd213ps ymm6,ymm4,[r10+180h]
    28fb  vfmadd213ps ymm6,ymm4,[r10+1A0h]
    2904  vpslld ymm5,ymm5,17h
    2909  vpaddd ymm6,ymm6,ymm5
    290d  vandnps ymm4,ymm7,ymm6
    2911  vmovups [rdi+r11+20h],ymm4
    2918  vaddps ymm3,ymm3,ymm4
    291c  add r11,40h
    2920  cmp r11,rbx
    2923  jl near 00000000000027E8h
    2929  vaddps ymm2,ymm2,ymm3
    292d  vperm2f128 ymm4,ymm2,ymm2,1
    2933  vaddps ymm2,ymm2,ymm4
    2937  vpshufd ymm4,ymm2,4Eh
    293c  vaddps ymm2,ymm2,ymm4
    2940  vpshufd ymm4,ymm2,0B1h
    2945  vaddps ymm2,ymm2,ymm4
    2949  vmovss [r9],xmm2
    294e  vzeroupper
    2951  pop rbx
    2952  ret
    2953  add [rax],al
    2955  add [rax],al
    2957  add [rax],al
    2959  add [rax],al
    295b  add [rax],al
    295d  add [rax],al
    295f  add [rax],al
    2961  add [rax],al
    2963  add [rax],al
    2965  add [rax],al
    2967  add [rax],al
    2969  add [rax],al
    296b  add [rax],al
    296d  add [rax],al
    296f  add [rax],al
    2971  add [rax],al
    2973  add [rax],al
    2975  add [rax],al
    2977  add [rax],al
    2979  add [rax],al
    297b  add [rax],al
    297d  add [rax],al
    297f  add [rax],al
    2981  add [rax-4FFFFFBEh],dh
    2987  add [rax],al
    298a  mov al,42h
    298c  add [rax],al
    298e  mov al,42h
    2990  add [rax],al
    2992  mov al,42h
    2994  add [rax],al
    2996  mov al,42h
    2998  add [rax],al
    299a  mov al,42h
    299c  add [rax],al
    299e  mov al,42h
    29a0  cmp ebp,[rdx-55C4C048h]
    29a6  mov eax,0B8AA3B3Fh
    29ab  (bad)
    29ad  stosb
    29ae  mov eax,0B8AA3B3Fh
    29b3  (bad)
    29b5  stosb
    29b6  mov eax,0B8AA3B3Fh
    29bb  (bad)
    29bd  stosb
    29be  mov eax,4000003Fh
    29c3  add [r8],al
    29c6  add [r8],al
    29ca  add [r8],al
    29ce  add [r8],al
    29d2  add [r8],al
    29d6  add [r8],al
    29da  add [r8],al
    29de  add [r10+31h],sil
    29e3  mov edi,0BF317200h
    29e8  add [rdx+31h],dh
    29eb  mov edi,0BF317200h
    29f0  add [rdx+31h],dh
    29f3  mov edi,0BF317200h
    29f8  add [rdx+31h],dh
    29fb  mov edi,0BF317200h
    2a00  (bad)
    2a06  mov edi,0BFBE8EB5h
    2a0b  mov ch,8Eh
    2a0d  mov esi,0BE8EB5BFh
    2a12  mov edi,0BFBE8EB5h
    2a17  mov ch,8Eh
    2a19  mov esi,0BE8EB5BFh
    2a1e  mov edi,0AE0000B5h
    2a23  ret 0
    2a26  scasb
    2a27  ret 0
    2a2a  scasb
    2a2b  ret 0
    2a2e  scasb
    2a2f  ret 0
    2a32  scasb
    2a33  ret 0
    2a36  scasb
    2a37  ret 0
    2a3a  scasb
    2a3b  ret 0
    2a3e  scasb
    2a3f  ret 6967h
    2a42  push rax
    2a43  cmp [rdi+69h],esp
    2a46  push rax
    2a47  cmp [rdi+69h],esp
    2a4a  push rax
    2a4b  cmp [rdi+69h],esp
    2a4e  push rax
    2a4f  cmp [rdi+69h],esp
    2a52  push rax
    2a53  cmp [rdi+69h],esp
    2a56  push rax
    2a57  cmp [rdi+69h],esp
    2a5a  push rax
    2a5b  cmp [rdi+69h],esp
    2a5e  push rax
    2a5f  cmp esi,ecx
    2a61  mov r15b,3Ah
    2a64  (bad)
    2a66  mov bh,3Ah
    2a68  (bad)
    2a6a  mov bh,3Ah
    2a6c  (bad)
    2a6e  mov bh,3Ah
    2a70  (bad)
    2a72  mov bh,3Ah
    2a74  (bad)
    2a76  mov bh,3Ah
    2a78  (bad)
    2a7a  mov bh,3Ah
    2a7c  (bad)
    2a7e  mov bh,3Ah
    2a80  or [rcx-76F7C3F8h],cl
    2a86  or [rax+rcx],bh
    2a89  mov [rax],ecx
    2a8b  cmp al,8
    2a8d  mov [rax],ecx
    2a8f  cmp al,8
    2a91  mov [rax],ecx
    2a93  cmp al,8
    2a95  mov [rax],ecx
    2a97  cmp al,8
    2a99  mov [rax],ecx
    2a9b  cmp al,8
    2a9d  mov [rax],ecx
    2a9f  cmp al,0C1h
    2aa1  test eax,0A9C13D2Ah
    2aa6  sub bh,[rel 3D2AD46Dh]
    2aac  shr dword [rcx-563EC2D6h],2Ah
    2ab3  cmp eax,3D2AA9C1h
    2ab8  shr dword [rcx-563EC2D6h],2Ah
    2abf  cmp eax,3E2AAAAAh
    2ac4  stosb
    2ac5  stosb
    2ac6  sub bh,[rsi]
    2ac8  stosb
    2ac9  stosb
    2aca  sub bh,[rsi]
    2acc  stosb
    2acd  stosb
    2ace  sub bh,[rsi]
    2ad0  stosb
    2ad1  stosb
    2ad2  sub bh,[rsi]
    2ad4  stosb
    2ad5  stosb
    2ad6  sub bh,[rsi]
    2ad8  stosb
    2ad9  stosb
    2ada  sub bh,[rsi]
    2adc  stosb
    2add  stosb
    2ade  sub bh,[rsi]
    2ae0  add [rax],al
    2ae2  add [rdi],bh
    2ae4  add [rax],al
    2ae6  add [rdi],bh
    2ae8  add [rax],al
    2aea  add [rdi],bh
    2aec  add [rax],al
    2aee  add [rdi],bh
    2af0  add [rax],al
    2af2  add [rdi],bh
    2af4  add [rax],al
    2af6  add [rdi],bh
    2af8  add [rax],al
    2afa  add [rdi],bh
    2afc  add [rax],al
    2afe  add [rdi],bh
    2b00  add [rax],al
    2b02  cmp byte [rdi],0
    2b05  add [rax-7FFFFFC1h],al
    2b0b  (bad)
    2b0d  add [rax-7FFFFFC1h],al
    2b13  (bad)
    2b15  add [rax-7FFFFFC1h],al
    2b1b  (bad)
    2b1d  add [rax-7FFFFFC1h],al
    2b23  (bad)
    2b25  add [rax-7FFFFFC1h],al
    2b2b  (bad)
    2b2d  add [rax-7FFFFFC1h],al
    2b33  (bad)
    2b35  add [rax-7FFFFFC1h],al
    2b3b  (bad)
    2b3d  add [rax-7FFFFFC1h],al
    2b43  inc dword [rax]
    2b45  add [rax-7FFFFF01h],al
    2b4b  inc dword [rax]
    2b4d  add [rax-7FFFFF01h],al
    2b53  inc dword [rax]
    2b55  add [rax-7FFFFF01h],al
    2b5b  inc dword [rax]
    2b5d  add [rax+0FFh],al
    2b63  add [rcx],al
    2b65  add [rax],al
    2b67  add [rdx],al
    2b69  add [rax],al
    2b6b  add [rbx],al
    2b6d  add [rax],al
    2b6f  add [rax+rax],al
    2b72  add [rax],al
    2b74  add eax,6000000h
    2b79  add [rax],al
    2b7b  add [rdi],al
    2b7d  add [rax],al
    2b7f  add [rax],cl
    2b81  add [rax],al
    2b83  add [rcx],cl
    2b85  add [rax],al
    2b87  add [rdx],cl
    2b89  add [rax],al
    2b8b  add [rbx],cl
    2b8d  add [rax],al
    2b8f  add [rax+rax],cl
    2b92  add [rax],al
    2b94  or eax,0E000000h
    2b99  add [rax],al
    2b9b  add [rdi],cl
    2b9d  add [rax],al
    2b9f  (bad)

combine_d32_g1_sinks:
    2bc0  push rbx
    2bc1  push rbp
    2bc2  lea rbp,[rel 2DC0h]
    2bc9  vbroadcastss ymm0,[rcx]
    2bce  mov r10,r9
    2bd1  xor rbx,rbx
    2bd4  cmp r10,1
    2bd8  jl short 0000000000002BEDh
    2bda  vbroadcastss ymm2,[rsi+rbx]
    2be0  vmaxps ymm0,ymm2,ymm0
    2be4  add rbx,4
    2be8  dec r10
    2beb  jmp short 0000000000002BD4h
    2bed  vpxor ymm4,ymm4,ymm4
    2bf1  vpxor ymm5,ymm5,ymm5
    2bf5  vpxor ymm6,ymm6,ymm6
    2bf9  vpxor ymm7,ymm7,ymm7
    2bfd  vpxor ymm1,ymm1,ymm1
    2c01  mov r10,r9
    2c04  mov r11,rdi
    2c07  xor rbx,rbx
    2c0a  cmp r10,1
    2c0e  jl near 0000000000002CD7h
    2c14  vbroadcastss ymm2,[rsi+rbx]
    2c1a  vsubps ymm2,ymm2,ymm0
    2c1e  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2c27  vminps ymm2,ymm2,[rbp]
    2c2c  vmovups ymm12,[rbp+20h]
    2c31  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2c37  vsubps ymm13,ymm12,[rbp+40h]
    2c3c  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2c42  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2c4b  vmovups ymm13,[rbp+0C0h]
    2c53  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2c5c  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2c65  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2c6e  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2c77  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2c80  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2c89  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2c92  vpslld ymm12,ymm12,17h
    2c98  vpaddd ymm13,ymm13,ymm12
    2c9d  vandnps ymm2,ymm14,ymm13
    2ca2  vbroadcastss ymm3,[rdx+rbx]
    2ca8  vfmadd231ps ymm1,ymm2,ymm3
    2cad  vfmadd231ps ymm4,ymm2,[r11]
    2cb2  vfmadd231ps ymm5,ymm2,[r11+20h]
    2cb8  vfmadd231ps ymm6,ymm2,[r11+40h]
    2cbe  vfmadd231ps ymm7,ymm2,[r11+60h]
    2cc4  add rbx,4
    2cc8  add r11,80h
    2ccf  dec r10
    2cd2  jmp 0000000000002C0Ah
    2cd7  vbroadcastss ymm2,[rcx]
    2cdc  vsubps ymm2,ymm2,ymm0
    2ce0  vcmpltps ymm14,ymm2,[rbp+0A0h]
    2ce9  vminps ymm2,ymm2,[rbp]
    2cee  vmovups ymm12,[rbp+20h]
    2cf3  vfmadd213ps ymm12,ymm2,[rbp+40h]
    2cf9  vsubps ymm13,ymm12,[rbp+40h]
    2cfe  vfmadd231ps ymm2,ymm13,[rbp+60h]
    2d04  vfmadd231ps ymm2,ymm13,[rbp+80h]
    2d0d  vmovups ymm13,[rbp+0C0h]
    2d15  vfmadd213ps ymm13,ymm2,[rbp+0E0h]
    2d1e  vfmadd213ps ymm13,ymm2,[rbp+100h]
    2d27  vfmadd213ps ymm13,ymm2,[rbp+120h]
    2d30  vfmadd213ps ymm13,ymm2,[rbp+140h]
    2d39  vfmadd213ps ymm13,ymm2,[rbp+160h]
    2d42  vfmadd213ps ymm13,ymm2,[rbp+180h]
    2d4b  vfmadd213ps ymm13,ymm2,[rbp+1A0h]
    2d54  vpslld ymm12,ymm12,17h
    2d5a  vpaddd ymm13,ymm13,ymm12
    2d5f  vandnps ymm2,ymm14,ymm13
    2d64  vaddps ymm1,ymm1,ymm2
    2d68  vdivps ymm4,ymm4,ymm1
    2d6c  vmovups [r8],ymm4
    2d71  vdivps ymm5,ymm5,ymm1
    2d75  vmovups [r8+20h],ymm5
    2d7b  vdivps ymm6,ymm6,ymm1
    2d7f  vmovups [r8+40h],ymm6
    2d85  vdivps ymm7,ymm7,ymm1
    2d89  vmovups [r8+60h],ymm7
    2d8f  vzeroupper
    2d92  pop rbp
    2d93  pop rbx
    2d94  ret
    2d95  add [rax],al
    2d97  add [rax],al
    2d99  add [rax],al
    2d9b  add [rax],al
    2d9d  add [rax],al
    2d9f  add [rax],al
    2da1  add [rax],al
    2da3  add [rax],al
    2da5  add [rax],al
    2da7  add [rax],al
    2da9  add [rax],al
    2dab  add [rax],al
    2dad  add [rax],al
    2daf  add [rax],al
    2db1  add [rax],al
    2db3  add [rax],al
    2db5  add [rax],al
    2db7  add [rax],al
    2db9  add [rax],al
    2dbb  add [rax],al
    2dbd  add [rax],al
    2dbf  add [rax],al
    2dc1  add [rax-4FFFFFBEh],dh
    2dc7  add [rax],al
    2dca  mov al,42h
    2dcc  add [rax],al
    2dce  mov al,42h
    2dd0  add [rax],al
    2dd2  mov al,42h
    2dd4  add [rax],al
    2dd6  mov al,42h
    2dd8  add [rax],al
    2dda  mov al,42h
    2ddc  add [rax],al
    2dde  mov al,42h
    2de0  cmp ebp,[rdx-55C4C048h]
    2de6  mov eax,0B8AA3B3Fh
    2deb  (bad)
    2ded  stosb
    2dee  mov eax,0B8AA3B3Fh
    2df3  (bad)
    2df5  stosb
    2df6  mov eax,0B8AA3B3Fh
    2dfb  (bad)
    2dfd  stosb
    2dfe  mov eax,4000003Fh
    2e03  add [r8],al
    2e06  add [r8],al
    2e0a  add [r8],al
    2e0e  add [r8],al
    2e12  add [r8],al
    2e16  add [r8],al
    2e1a  add [r8],al
    2e1e  add [r10+31h],sil
    2e23  mov edi,0BF317200h
    2e28  add [rdx+31h],dh
    2e2b  mov edi,0BF317200h
    2e30  add [rdx+31h],dh
    2e33  mov edi,0BF317200h
    2e38  add [rdx+31h],dh
    2e3b  mov edi,0BF317200h
    2e40  (bad)
    2e46  mov edi,0BFBE8EB5h
    2e4b  mov ch,8Eh
    2e4d  mov esi,0BE8EB5BFh
    2e52  mov edi,0BFBE8EB5h
    2e57  mov ch,8Eh
    2e59  mov esi,0BE8EB5BFh
    2e5e  mov edi,0AE0000B5h
    2e63  ret 0
    2e66  scasb
    2e67  ret 0
    2e6a  scasb
    2e6b  ret 0
    2e6e  scasb
    2e6f  ret 0
    2e72  scasb
    2e73  ret 0
    2e76  scasb
    2e77  ret 0
    2e7a  scasb
    2e7b  ret 0
    2e7e  scasb
    2e7f  ret 6967h
    2e82  push rax
    2e83  cmp [rdi+69h],esp
    2e86  push rax
    2e87  cmp [rdi+69h],esp
    2e8a  push rax
    2e8b  cmp [rdi+69h],esp
    2e8e  push rax
    2e8f  cmp [rdi+69h],esp
    2e92  push rax
    2e93  cmp [rdi+69h],esp
    2e96  push rax
    2e97  cmp [rdi+69h],esp
    2e9a  push rax
    2e9b  cmp [rdi+69h],esp
    2e9e  push rax
    2e9f  cmp esi,ecx
    2ea1  mov r15b,3Ah
    2ea4  (bad)
    2ea6  mov bh,3Ah
    2ea8  (bad)
    2eaa  mov bh,3Ah
    2eac  (bad)
    2eae  mov bh,3Ah
    2eb0  (bad)
    2eb2  mov bh,3Ah
    2eb4  (bad)
    2eb6  mov bh,3Ah
    2eb8  (bad)
    2eba  mov bh,3Ah
    2ebc  (bad)
    2ebe  mov bh,3Ah
    2ec0  or [rcx-76F7C3F8h],cl
    2ec6  or [rax+rcx],bh
    2ec9  mov [rax],ecx
    2ecb  cmp al,8
    2ecd  mov [rax],ecx
    2ecf  cmp al,8
    2ed1  mov [rax],ecx
    2ed3  cmp al,8
    2ed5  mov [rax],ecx
    2ed7  cmp al,8
    2ed9  mov [rax],ecx
    2edb  cmp al,8
    2edd  mov [rax],ecx
    2edf  cmp al,0C1h
    2ee1  test eax,0A9C13D2Ah
    2ee6  sub bh,[rel 3D2AD8ADh]
    2eec  shr dword [rcx-563EC2D6h],2Ah
    2ef3  cmp eax,3D2AA9C1h
    2ef8  shr dword [rcx-563EC2D6h],2Ah
    2eff  cmp eax,3E2AAAAAh
    2f04  stosb
    2f05  stosb
    2f06  sub bh,[rsi]
    2f08  stosb
    2f09  stosb
    2f0a  sub bh,[rsi]
    2f0c  stosb
    2f0d  stosb
    2f0e  sub bh,[rsi]
    2f10  stosb
    2f11  stosb
    2f12  sub bh,[rsi]
    2f14  stosb
    2f15  stosb
    2f16  sub bh,[rsi]
    2f18  stosb
    2f19  stosb
    2f1a  sub bh,[rsi]
    2f1c  stosb
    2f1d  stosb
    2f1e  sub bh,[rsi]
    2f20  add [rax],al
    2f22  add [rdi],bh
    2f24  add [rax],al
    2f26  add [rdi],bh
    2f28  add [rax],al
    2f2a  add [rdi],bh
    2f2c  add [rax],al
    2f2e  add [rdi],bh
    2f30  add [rax],al
    2f32  add [rdi],bh
    2f34  add [rax],al
    2f36  add [rdi],bh
    2f38  add [rax],al
    2f3a  add [rdi],bh
    2f3c  add [rax],al
    2f3e  add [rdi],bh
    2f40  add [rax],al
    2f42  cmp byte [rdi],0
    2f45  add [rax-7FFFFFC1h],al
    2f4b  (bad)
    2f4d  add [rax-7FFFFFC1h],al
    2f53  (bad)
    2f55  add [rax-7FFFFFC1h],al
    2f5b  (bad)
    2f5d  add [rax-7FFFFFC1h],al
    2f63  (bad)
    2f65  add [rax-7FFFFFC1h],al
    2f6b  (bad)
    2f6d  add [rax-7FFFFFC1h],al
    2f73  (bad)
    2f75  add [rax-7FFFFFC1h],al
    2f7b  (bad)
    2f7d  add [rax-7FFFFFC1h],al
    2f83  inc dword [rax]
    2f85  add [rax-7FFFFF01h],al
    2f8b  inc dword [rax]
    2f8d  add [rax-7FFFFF01h],al
    2f93  inc dword [rax]
    2f95  add [rax-7FFFFF01h],al
    2f9b  inc dword [rax]
    2f9d  add [rax+0FFh],al
    2fa3  add [rcx],al
    2fa5  add [rax],al
    2fa7  add [rdx],al
    2fa9  add [rax],al
    2fab  add [rbx],al
    2fad  add [rax],al
    2faf  add [rax+rax],al
    2fb2  add [rax],al
    2fb4  add eax,6000000h
    2fb9  add [rax],al
    2fbb  add [rdi],al
    2fbd  add [rax],al
    2fbf  add [rax],cl
    2fc1  add [rax],al
    2fc3  add [rcx],cl
    2fc5  add [rax],al
    2fc7  add [rdx],cl
    2fc9  add [rax],al
    2fcb  add [rbx],cl
    2fcd  add [rax],al
    2fcf  add [rax+rax],cl
    2fd2  add [rax],al
    2fd4  or eax,0E000000h
    2fd9  add [rax],al
    2fdb  add [rdi],cl
    2fdd  add [rax],al
    2fdf  (bad)

map_n32_1e3898d682e799f0:
    3000  lea rax,[rel 3300h]
    3007  vbroadcastss ymm13,[rax]
    300c  vbroadcastss ymm12,[rax+20h]
    3012  vbroadcastss ymm11,[rax+40h]
    3018  vbroadcastss ymm10,[rax+60h]
    301e  vbroadcastss ymm9,[rax+80h]
    3027  vbroadcastss ymm8,[rax+0A0h]
    3030  vbroadcastss ymm7,[rax+0C0h]
    3039  vbroadcastss ymm15,[rax+0E0h]
    3042  vbroadcastss ymm6,[rax+100h]
    304b  vbroadcastss ymm5,[rax+120h]
    3054  vbroadcastss ymm14,[rax+140h]
    305d  test rcx,rcx
    3060  je near 00000000000032CDh
    3066  vmovups ymm0,[rsi]
    306a  vminps ymm0,ymm0,ymm5
    306e  vsubps ymm1,ymm13,ymm0
    3072  vminps ymm2,ymm1,[rax+160h]
    307a  vmovups ymm3,ymm14
    307f  vfmadd231ps ymm3,ymm2,ymm6
    3084  vsubps ymm4,ymm3,ymm14
    3089  vfmadd231ps ymm2,ymm4,[rax+180h]
    3092  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    309b  vmovups ymm4,ymm11
    30a0  vfmadd231ps ymm4,ymm12,ymm2
    30a5  vfmadd213ps ymm4,ymm2,ymm10
    30aa  vfmadd213ps ymm4,ymm2,ymm9
    30af  vfmadd213ps ymm4,ymm2,ymm8
    30b4  vfmadd213ps ymm4,ymm2,ymm7
    30b9  vfmadd213ps ymm4,ymm2,ymm15
    30be  vfmadd213ps ymm4,ymm2,ymm15
    30c3  vpslld ymm2,ymm3,17h
    30c8  vpaddd ymm2,ymm2,ymm4
    30cc  vcmpnltps ymm3,ymm1,[rax+1C0h]
    30d5  vpand ymm3,ymm3,ymm2
    30d9  vaddps ymm1,ymm15,ymm3
    30dd  vdivps ymm1,ymm15,ymm1
    30e1  vmulps ymm0,ymm0,ymm1
    30e5  vmovups ymm1,[rdx]
    30e9  vaddps ymm1,ymm1,ymm15
    30ee  vmulps ymm0,ymm0,ymm1
    30f2  vmovups [rdi],ymm0
    30f6  vmovups ymm0,[rsi+20h]
    30fb  vminps ymm0,ymm0,ymm5
    30ff  vsubps ymm1,ymm13,ymm0
    3103  vminps ymm2,ymm1,[rax+160h]
    310b  vmovups ymm3,ymm14
    3110  vfmadd231ps ymm3,ymm2,ymm6
    3115  vsubps ymm4,ymm3,ymm14
    311a  vfmadd231ps ymm2,ymm4,[rax+180h]
    3123  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    312c  vmovups ymm4,ymm11
    3131  vfmadd231ps ymm4,ymm12,ymm2
    3136  vfmadd213ps ymm4,ymm2,ymm10
    313b  vfmadd213ps ymm4,ymm2,ymm9
    3140  vfmadd213ps ymm4,ymm2,ymm8
    3145  vfmadd213ps ymm4,ymm2,ymm7
    314a  vfmadd213ps ymm4,ymm2,ymm15
    314f  vfmadd213ps ymm4,ymm2,ymm15
    3154  vpslld ymm2,ymm3,17h
    3159  vpaddd ymm2,ymm2,ymm4
    315d  vcmpnltps ymm3,ymm1,[rax+1C0h]
    3166  vpand ymm3,ymm3,ymm2
    316a  vaddps ymm1,ymm15,ymm3
    316e  vdivps ymm1,ymm15,ymm1
    3172  vmulps ymm0,ymm0,ymm1
    3176  vmovups ymm1,[rdx+20h]
    317b  vaddps ymm1,ymm1,ymm15
    3180  vmulps ymm0,ymm0,ymm1
    3184  vmovups [rdi+20h],ymm0
    3189  vmovups ymm0,[rsi+40h]
    318e  vminps ymm0,ymm0,ymm5
    3192  vsubps ymm1,ymm13,ymm0
    3196  vminps ymm2,ymm1,[rax+160h]
    319e  vmovups ymm3,ymm14
    31a3  vfmadd231ps ymm3,ymm2,ymm6
    31a8  vsubps ymm4,ymm3,ymm14
    31ad  vfmadd231ps ymm2,ymm4,[rax+180h]
    31b6  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    31bf  vmovups ymm4,ymm11
    31c4  vfmadd231ps ymm4,ymm12,ymm2
    31c9  vfmadd213ps ymm4,ymm2,ymm10
    31ce  vfmadd213ps ymm4,ymm2,ymm9
    31d3  vfmadd213ps ymm4,ymm2,ymm8
    31d8  vfmadd213ps ymm4,ymm2,ymm7
    31dd  vfmadd213ps ymm4,ymm2,ymm15
    31e2  vfmadd213ps ymm4,ymm2,ymm15
    31e7  vpslld ymm2,ymm3,17h
    31ec  vpaddd ymm2,ymm2,ymm4
    31f0  vcmpnltps ymm3,ymm1,[rax+1C0h]
    31f9  vpand ymm3,ymm3,ymm2
    31fd  vaddps ymm1,ymm15,ymm3
    3201  vdivps ymm1,ymm15,ymm1
    3205  vmulps ymm0,ymm0,ymm1
    3209  vmovups ymm1,[rdx+40h]
    320e  vaddps ymm1,ymm1,ymm15
    3213  vmulps ymm0,ymm0,ymm1
    3217  vmovups [rdi+40h],ymm0
    321c  vmovups ymm0,[rsi+60h]
    3221  vminps ymm0,ymm0,ymm5
    3225  vsubps ymm1,ymm13,ymm0
    3229  vminps ymm2,ymm1,[rax+160h]
    3231  vmovups ymm3,ymm14
    3236  vfmadd231ps ymm3,ymm2,ymm6
    323b  vsubps ymm4,ymm3,ymm14
    3240  vfmadd231ps ymm2,ymm4,[rax+180h]
    3249  vfmadd231ps ymm2,ymm4,[rax+1A0h]
    3252  vmovups ymm4,ymm11
    3257  vfmadd231ps ymm4,ymm12,ymm2
    325c  vfmadd213ps ymm4,ymm2,ymm10
    3261  vfmadd213ps ymm4,ymm2,ymm9
    3266  vfmadd213ps ymm4,ymm2,ymm8
    326b  vfmadd213ps ymm4,ymm2,ymm7
    3270  vfmadd213ps ymm4,ymm2,ymm15
    3275  vfmadd213ps ymm4,ymm2,ymm15
    327a  vpslld ymm2,ymm3,17h
    327f  vpaddd ymm2,ymm2,ymm4
    3283  vcmpnltps ymm3,ymm1,[rax+1C0h]
    328c  vpand ymm3,ymm3,ymm2
    3290  vaddps ymm1,ymm15,ymm3
    3294  vdivps ymm1,ymm15,ymm1
    3298  vmulps ymm0,ymm0,ymm1
    329c  vmovups ymm1,[rdx+60h]
    32a1  vaddps ymm1,ymm1,ymm15
    32a6  vmulps ymm0,ymm0,ymm1
    32aa  vmovups [rdi+60h],ymm0
    32af  add rdi,100h
    32b6  add rsi,100h
    32bd  add rdx,100h
    32c4  dec rcx
    32c7  jne near 0000000000003066h
    32cd  vzeroupper
    32d0  ret
    32d1  add [rax],al
    32d3  add [rax],al
    32d5  add [rax],al
    32d7  add [rax],al
    32d9  add [rax],al
    32db  add [rax],al
    32dd  add [rax],al
    32df  add [rax],al
    32e1  add [rax],al
    32e3  add [rax],al
    32e5  add [rax],al
    32e7  add [rax],al
    32e9  add [rax],al
    32eb  add [rax],al
    32ed  add [rax],al
    32ef  add [rax],al
    32f1  add [rax],al
    32f3  add [rax],al
    32f5  add [rax],al
    32f7  add [rax],al
    32f9  add [rax],al
    32fb  add [rax],al
    32fd  add [rax],al
    32ff  add [rax],al
    3301  add [rax],al
    3303  add [rax],al
    3305  add [rax],al
    3307  add [rax],al
    3309  add [rax],al
    330b  add [rax],al
    330d  add [rax],al
    330f  add [rax],al
    3311  add [rax],al
    3313  add [rax],al
    3315  add [rax],al
    3317  add [rax],al
    3319  add [rax],al
    331b  add [rax],al
    331d  add [rax],al
    331f  add [rdi+69h],ah
    3322  push rax
    3323  cmp [rdi+69h],esp
    3326  push rax
    3327  cmp [rdi+69h],esp
    332a  push rax
    332b  cmp [rdi+69h],esp
    332e  push rax
    332f  cmp [rdi+69h],esp
    3332  push rax
    3333  cmp [rdi+69h],esp
    3336  push rax
    3337  cmp [rdi+69h],esp
    333a  push rax
    333b  cmp [rdi+69h],esp
    333e  push rax
    333f  cmp esi,ecx
    3341  mov r15b,3Ah
    3344  (bad)
    3346  mov bh,3Ah
    3348  (bad)
    334a  mov bh,3Ah
    334c  (bad)
    334e  mov bh,3Ah
    3350  (bad)
    3352  mov bh,3Ah
    3354  (bad)
    3356  mov bh,3Ah
    3358  (bad)
    335a  mov bh,3Ah
    335c  (bad)
    335e  mov bh,3Ah
    3360  or [rcx-76F7C3F8h],cl
    3366  or [rax+rcx],bh
    3369  mov [rax],ecx
    336b  cmp al,8
    336d  mov [rax],ecx
    336f  cmp al,8
    3371  mov [rax],ecx
    3373  cmp al,8
    3375  mov [rax],ecx
    3377  cmp al,8
    3379  mov [rax],ecx
    337b  cmp al,8
    337d  mov [rax],ecx
    337f  cmp al,0C1h
    3381  test eax,0A9C13D2Ah
    3386  sub bh,[rel 3D2ADD4Dh]
    338c  shr dword [rcx-563EC2D6h],2Ah
    3393  cmp eax,3D2AA9C1h
    3398  shr dword [rcx-563EC2D6h],2Ah
    339f  cmp eax,3E2AAAAAh
    33a4  stosb
    33a5  stosb
    33a6  sub bh,[rsi]
    33a8  stosb
    33a9  stosb
    33aa  sub bh,[rsi]
    33ac  stosb
    33ad  stosb
    33ae  sub bh,[rsi]
    33b0  stosb
    33b1  stosb
    33b2  sub bh,[rsi]
    33b4  stosb
    33b5  stosb
    33b6  sub bh,[rsi]
    33b8  stosb
    33b9  stosb
    33ba  sub bh,[rsi]
    33bc  stosb
    33bd  stosb
    33be  sub bh,[rsi]
    33c0  add [rax],al
    33c2  add [rdi],bh
    33c4  add [rax],al
    33c6  add [rdi],bh
    33c8  add [rax],al
    33ca  add [rdi],bh
    33cc  add [rax],al
    33ce  add [rdi],bh
    33d0  add [rax],al
    33d2  add [rdi],bh
    33d4  add [rax],al
    33d6  add [rdi],bh
    33d8  add [rax],al
    33da  add [rdi],bh
    33dc  add [rax],al
    33de  add [rdi],bh
    33e0  add [rax],al
    33e2  cmp byte [rdi],0
    33e5  add [rax-7FFFFFC1h],al
    33eb  (bad)
    33ed  add [rax-7FFFFFC1h],al
    33f3  (bad)
    33f5  add [rax-7FFFFFC1h],al
    33fb  (bad)
    33fd  add [rax-4755C4C1h],al
    3403  (bad)
    3405  stosb
    3406  mov eax,0B8AA3B3Fh
    340b  (bad)
    340d  stosb
    340e  mov eax,0B8AA3B3Fh
    3413  (bad)
    3415  stosb
    3416  mov eax,0B8AA3B3Fh
    341b  (bad)
    341d  stosb
    341e  mov eax,0E000003Fh
    3423  add [rax],al
    3426  loopne 0000000000003468h
    3428  add [rax],al
    342a  loopne 000000000000346Ch
    342c  add [rax],al
    342e  loopne 0000000000003470h
    3430  add [rax],al
    3432  loopne 0000000000003474h
    3434  add [rax],al
    3436  loopne 0000000000003478h
    3438  add [rax],al
    343a  loopne 000000000000347Ch
    343c  add [rax],al
    343e  loopne 0000000000003480h
    3440  add [rax],al
    3442  add [r8],al
    3446  add [r8],al
    344a  add [r8],al
    344e  add [r8],al
    3452  add [r8],al
    3456  add [r8],al
    345a  add [r8],al
    345e  add [r8],al
    3462  mov al,42h
    3464  add [rax],al
    3466  mov al,42h
    3468  add [rax],al
    346a  mov al,42h
    346c  add [rax],al
    346e  mov al,42h
    3470  add [rax],al
    3472  mov al,42h
    3474  add [rax],al
    3476  mov al,42h
    3478  add [rax],al
    347a  mov al,42h
    347c  add [rax],al
    347e  mov al,42h
    3480  add [rdx+31h],dh
    3483  mov edi,0BF317200h
    3488  add [rdx+31h],dh
    348b  mov edi,0BF317200h
    3490  add [rdx+31h],dh
    3493  mov edi,0BF317200h
    3498  add [rdx+31h],dh
    349b  mov edi,0BF317200h
    34a0  (bad)
    34a6  mov edi,0BFBE8EB5h
    34ab  mov ch,8Eh
    34ad  mov esi,0BE8EB5BFh
    34b2  mov edi,0BFBE8EB5h
    34b7  mov ch,8Eh
    34b9  mov esi,0BE8EB5BFh
    34be  mov edi,0AE0000B5h
    34c3  ret 0
    34c6  scasb
    34c7  ret 0
    34ca  scasb
    34cb  ret 0
    34ce  scasb
    34cf  ret 0
    34d2  scasb
    34d3  ret 0
    34d6  scasb
    34d7  ret 0
    34da  scasb
    34db  ret 0
    34de  scasb
    34df  (bad)

quantize_q8:
    3500  lea rax,[rel 3669h]
    3507  vpxor ymm15,ymm15,ymm15
    350c  vpbroadcastd ymm14,[rax+4]
    3512  vpbroadcastd ymm13,[rax]
    3517  vpbroadcastd ymm12,[rax+8]
    351d  vpbroadcastd ymm11,[rax+0Ch]
    3523  vpbroadcastd ymm10,[rax+10h]
    3529  vmovdqu ymm9,[rax+14h]
    352e  test r8,r8
    3531  je near 0000000000003665h
    3537  vmovups ymm0,[rdi]
    353b  vpand ymm4,ymm0,ymm13
    3540  vmovups ymm1,[rdi+20h]
    3545  vpand ymm5,ymm1,ymm13
    354a  vpmaxsd ymm4,ymm4,ymm5
    354f  vmovups ymm2,[rdi+40h]
    3554  vpand ymm5,ymm2,ymm13
    3559  vpmaxsd ymm4,ymm4,ymm5
    355e  vmovups ymm3,[rdi+60h]
    3563  vpand ymm5,ymm3,ymm13
    3568  vpmaxsd ymm4,ymm4,ymm5
    356d  vextracti128 xmm5,ymm4,1
    3573  vpmaxsd xmm4,xmm4,xmm5
    3578  vpshufd xmm5,xmm4,4Eh
    357d  vpmaxsd xmm4,xmm4,xmm5
    3582  vpshufd xmm5,xmm4,0B1h
    3587  vpmaxsd xmm4,xmm4,xmm5
    358c  vdivss xmm5,xmm4,xmm14
    3591  vmovss [rdx],xmm5
    3595  vcmpneqps xmm5,xmm4,xmm15
    359b  vdivps xmm4,xmm14,xmm4
    359f  vandps xmm4,xmm4,xmm5
    35a3  vbroadcastss ymm4,xmm4
    35a8  vmulps ymm0,ymm0,ymm4
    35ac  vaddps ymm0,ymm0,ymm12
    35b1  vpsubd ymm0,ymm0,ymm12
    35b6  vpmaxsd ymm0,ymm0,ymm11
    35bb  vpminsd ymm0,ymm0,ymm10
    35c0  vmulps ymm1,ymm1,ymm4
    35c4  vaddps ymm1,ymm1,ymm12
    35c9  vpsubd ymm1,ymm1,ymm12
    35ce  vpmaxsd ymm1,ymm1,ymm11
    35d3  vpminsd ymm1,ymm1,ymm10
    35d8  vmulps ymm2,ymm2,ymm4
    35dc  vaddps ymm2,ymm2,ymm12
    35e1  vpsubd ymm2,ymm2,ymm12
    35e6  vpmaxsd ymm2,ymm2,ymm11
    35eb  vpminsd ymm2,ymm2,ymm10
    35f0  vmulps ymm3,ymm3,ymm4
    35f4  vaddps ymm3,ymm3,ymm12
    35f9  vpsubd ymm3,ymm3,ymm12
    35fe  vpmaxsd ymm3,ymm3,ymm11
    3603  vpminsd ymm3,ymm3,ymm10
    3608  vpaddd ymm4,ymm0,ymm1
    360c  vpaddd ymm5,ymm2,ymm3
    3610  vpaddd ymm4,ymm4,ymm5
    3614  vpackssdw ymm0,ymm0,ymm1
    3618  vpackssdw ymm2,ymm2,ymm3
    361c  vpacksswb ymm0,ymm0,ymm2
    3620  vpermd ymm0,ymm9,ymm0
    3625  vmovdqu [rsi],ymm0
    3629  vextracti128 xmm5,ymm4,1
    362f  vpaddd xmm4,xmm4,xmm5
    3633  vpshufd xmm5,xmm4,4Eh
    3638  vpaddd xmm4,xmm4,xmm5
    363c  vpshufd xmm5,xmm4,0B1h
    3641  vpaddd xmm4,xmm4,xmm5
    3645  vmovd [rcx],xmm4
    3649  add rdi,80h
    3650  add rsi,20h
    3654  add rdx,4
    3658  add rcx,4
    365c  dec r8
    365f  jne near 0000000000003537h
    3665  vzeroupper
    3668  ret
    3669  (bad)
    366b  (bad)
    366d  add [rax],al
    366f  inc byte [rdx]
    3672  add [rax+4Bh],al
    3675  cmp bh,0FFh
    3678  (bad)
    367a  add [rax],al
    367c  add [rax],al
    367e  add [rax],al
    3680  add [rax+rax],al
    3683  add [rax],al
    3685  add [rax],eax
    3687  add [rax],al
    3689  add eax,2000000h
    368e  add [rax],al
    3690  add [rsi],al
    3692  add [rax],al
    3694  add [rbx],al
    3696  add [rax],al
    3698  add [rdi],al
    369a  add [rax],al
    369c  (bad)

dot_adjacent_mxfp4_q8_k64_t1_pairs:
    36c0  push rcx
    36c1  push rdx
    36c2  mov rax,rsi
    36c5  mov r9,[rax]
    36c8  lea r10,[rel 4171h]
    36cf  vpbroadcastd ymm0,[r10]
    36d4  vbroadcasti128 ymm1,[r10+14h]
    36da  sub rsp,160h
    36e1  vpbroadcastd ymm8,[r10+8]
    36e7  vmovdqu [rsp+120h],ymm8
    36f0  vpbroadcastd ymm8,[r10+0Ch]
    36f6  vmovdqu [rsp+140h],ymm8
    36ff  vpxor ymm9,ymm9,ymm9
    3704  vmovups [rsp],ymm9
    3709  vmovups [rsp+20h],ymm9
    370f  vmovups [rsp+40h],ymm9
    3715  vmovups [rsp+60h],ymm9
    371b  vmovups [rsp+80h],ymm9
    3724  vmovups [rsp+0A0h],ymm9
    372d  vmovups [rsp+0C0h],ymm9
    3736  vmovups [rsp+0E0h],ymm9
    373f  lea rsi,[rdi+40h]
    3743  xor r8,r8
    3746  lea rdx,[rsi+200h]
    374d  lea rcx,[rdi+900h]
    3754  cmp r8,0
    3758  jne short 0000000000003761h
    375a  lea rdx,[rsi+900h]
    3761  test r8,0Ch
    3768  jne short 0000000000003786h
    376a  prefetcht1 [rcx]
    376d  prefetcht1 [rcx+240h]
    3774  prefetcht1 [rcx+480h]
    377b  prefetcht1 [rcx+6C0h]
    3782  add rcx,40h
    3786  vpbroadcastd ymm3,[r10+10h]
    378c  vpbroadcastd ymm2,[r9+r8+48h]
    3793  vpmulld ymm2,ymm2,ymm3
    3798  vmovdqu [rsp+100h],ymm2
    37a1  vpbroadcastd ymm6,[r9+r8*8]
    37a7  vpbroadcastd ymm7,[r9+r8*8+4]
    37ae  prefetcht1 [rdx]
    37b1  vmovdqu ymm2,[rsi]
    37b5  vmovdqu ymm4,[rsi+20h]
    37ba  vpsrlw ymm3,ymm2,4
    37bf  vpsrlw ymm5,ymm4,4
    37c4  vpand ymm2,ymm2,ymm0
    37c8  vpand ymm4,ymm4,ymm0
    37cc  vpand ymm3,ymm3,ymm0
    37d0  vpand ymm5,ymm5,ymm0
    37d4  vpshufb ymm2,ymm1,ymm2
    37d9  vpshufb ymm4,ymm1,ymm4
    37de  vpshufb ymm3,ymm1,ymm3
    37e3  vpshufb ymm5,ymm1,ymm5
    37e8  vpmaddubsw ymm12,ymm2,ymm6
    37ed  vpmaddubsw ymm13,ymm4,ymm6
    37f2  vpmaddubsw ymm3,ymm3,ymm7
    37f7  vpmaddubsw ymm5,ymm5,ymm7
    37fc  vpaddw ymm12,ymm12,ymm3
    3800  vpaddw ymm13,ymm13,ymm5
    3804  prefetcht1 [rdx+240h]
    380b  vmovdqu ymm2,[rsi+240h]
    3813  vmovdqu ymm4,[rsi+260h]
    381b  vpsrlw ymm3,ymm2,4
    3820  vpsrlw ymm5,ymm4,4
    3825  vpand ymm2,ymm2,ymm0
    3829  vpand ymm4,ymm4,ymm0
    382d  vpand ymm3,ymm3,ymm0
    3831  vpand ymm5,ymm5,ymm0
    3835  vpshufb ymm2,ymm1,ymm2
    383a  vpshufb ymm4,ymm1,ymm4
    383f  vpshufb ymm3,ymm1,ymm3
    3844  vpshufb ymm5,ymm1,ymm5
    3849  vpmaddubsw ymm14,ymm2,ymm6
    384e  vpmaddubsw ymm15,ymm4,ymm6
    3853  vpmaddubsw ymm3,ymm3,ymm7
    3858  vpmaddubsw ymm5,ymm5,ymm7
    385d  vpaddw ymm14,ymm14,ymm3
    3861  vpaddw ymm15,ymm15,ymm5
    3865  vpbroadcastd ymm6,[r9+r8*8+8]
    386c  vpbroadcastd ymm7,[r9+r8*8+0Ch]
    3873  prefetcht1 [rdx+480h]
    387a  vmovdqu ymm2,[rsi+40h]
    387f  vmovdqu ymm4,[rsi+60h]
    3884  vpsrlw ymm3,ymm2,4
    3889  vpsrlw ymm5,ymm4,4
    388e  vpand ymm2,ymm2,ymm0
    3892  vpand ymm4,ymm4,ymm0
    3896  vpand ymm3,ymm3,ymm0
    389a  vpand ymm5,ymm5,ymm0
    389e  vpshufb ymm2,ymm1,ymm2
    38a3  vpshufb ymm4,ymm1,ymm4
    38a8  vpshufb ymm3,ymm1,ymm3
    38ad  vpshufb ymm5,ymm1,ymm5
    38b2  vpmaddubsw ymm2,ymm2,ymm6
    38b7  vpmaddubsw ymm4,ymm4,ymm6
    38bc  vpmaddubsw ymm3,ymm3,ymm7
    38c1  vpmaddubsw ymm5,ymm5,ymm7
    38c6  vpaddw ymm12,ymm12,ymm2
    38ca  vpaddw ymm13,ymm13,ymm4
    38ce  vpaddw ymm12,ymm12,ymm3
    38d2  vpaddw ymm13,ymm13,ymm5
    38d6  vpmaddwd ymm8,ymm12,[rsp+120h]
    38df  vpmaddwd ymm9,ymm13,[rsp+120h]
    38e8  vpaddd ymm8,ymm8,[rsp+100h]
    38f1  vpaddd ymm9,ymm9,[rsp+100h]
    38fa  prefetcht1 [rdx+6C0h]
    3901  vmovdqu ymm2,[rsi+280h]
    3909  vmovdqu ymm4,[rsi+2A0h]
    3911  vpsrlw ymm3,ymm2,4
    3916  vpsrlw ymm5,ymm4,4
    391b  vpand ymm2,ymm2,ymm0
    391f  vpand ymm4,ymm4,ymm0
    3923  vpand ymm3,ymm3,ymm0
    3927  vpand ymm5,ymm5,ymm0
    392b  vpshufb ymm2,ymm1,ymm2
    3930  vpshufb ymm4,ymm1,ymm4
    3935  vpshufb ymm3,ymm1,ymm3
    393a  vpshufb ymm5,ymm1,ymm5
    393f  vpmaddubsw ymm2,ymm2,ymm6
    3944  vpmaddubsw ymm4,ymm4,ymm6
    3949  vpmaddubsw ymm3,ymm3,ymm7
    394e  vpmaddubsw ymm5,ymm5,ymm7
    3953  vpaddw ymm14,ymm14,ymm2
    3957  vpaddw ymm15,ymm15,ymm4
    395b  vpaddw ymm14,ymm14,ymm3
    395f  vpaddw ymm15,ymm15,ymm5
    3963  vpmaddwd ymm10,ymm14,[rsp+120h]
    396c  vpmaddwd ymm11,ymm15,[rsp+120h]
    3975  vpaddd ymm10,ymm10,[rsp+100h]
    397e  vpaddd ymm11,ymm11,[rsp+100h]
    3987  vpbroadcastd ymm6,[r9+r8*8+10h]
    398e  vpbroadcastd ymm7,[r9+r8*8+14h]
    3995  prefetcht1 [rdx+40h]
    3999  vmovdqu ymm2,[rsi+80h]
    39a1  vmovdqu ymm4,[rsi+0A0h]
    39a9  vpsrlw ymm3,ymm2,4
    39ae  vpsrlw ymm5,ymm4,4
    39b3  vpand ymm2,ymm2,ymm0
    39b7  vpand ymm4,ymm4,ymm0
    39bb  vpand ymm3,ymm3,ymm0
    39bf  vpand ymm5,ymm5,ymm0
    39c3  vpshufb ymm2,ymm1,ymm2
    39c8  vpshufb ymm4,ymm1,ymm4
    39cd  vpshufb ymm3,ymm1,ymm3
    39d2  vpshufb ymm5,ymm1,ymm5
    39d7  vpmaddubsw ymm12,ymm2,ymm6
    39dc  vpmaddubsw ymm13,ymm4,ymm6
    39e1  vpmaddubsw ymm3,ymm3,ymm7
    39e6  vpmaddubsw ymm5,ymm5,ymm7
    39eb  vpaddw ymm12,ymm12,ymm3
    39ef  vpaddw ymm13,ymm13,ymm5
    39f3  prefetcht1 [rdx+280h]
    39fa  vmovdqu ymm2,[rsi+2C0h]
    3a02  vmovdqu ymm4,[rsi+2E0h]
    3a0a  vpsrlw ymm3,ymm2,4
    3a0f  vpsrlw ymm5,ymm4,4
    3a14  vpand ymm2,ymm2,ymm0
    3a18  vpand ymm4,ymm4,ymm0
    3a1c  vpand ymm3,ymm3,ymm0
    3a20  vpand ymm5,ymm5,ymm0
    3a24  vpshufb ymm2,ymm1,ymm2
    3a29  vpshufb ymm4,ymm1,ymm4
    3a2e  vpshufb ymm3,ymm1,ymm3
    3a33  vpshufb ymm5,ymm1,ymm5
    3a38  vpmaddubsw ymm14,ymm2,ymm6
    3a3d  vpmaddubsw ymm15,ymm4,ymm6
    3a42  vpmaddubsw ymm3,ymm3,ymm7
    3a47  vpmaddubsw ymm5,ymm5,ymm7
    3a4c  vpaddw ymm14,ymm14,ymm3
    3a50  vpaddw ymm15,ymm15,ymm5
    3a54  vpbroadcastd ymm6,[r9+r8*8+18h]
    3a5b  vpbroadcastd ymm7,[r9+r8*8+1Ch]
    3a62  prefetcht1 [rdx+4C0h]
    3a69  vmovdqu ymm2,[rsi+0C0h]
    3a71  vmovdqu ymm4,[rsi+0E0h]
    3a79  vpsrlw ymm3,ymm2,4
    3a7e  vpsrlw ymm5,ymm4,4
    3a83  vpand ymm2,ymm2,ymm0
    3a87  vpand ymm4,ymm4,ymm0
    3a8b  vpand ymm3,ymm3,ymm0
    3a8f  vpand ymm5,ymm5,ymm0
    3a93  vpshufb ymm2,ymm1,ymm2
    3a98  vpshufb ymm4,ymm1,ymm4
    3a9d  vpshufb ymm3,ymm1,ymm3
    3aa2  vpshufb ymm5,ymm1,ymm5
    3aa7  vpmaddubsw ymm2,ymm2,ymm6
    3aac  vpmaddubsw ymm4,ymm4,ymm6
    3ab1  vpmaddubsw ymm3,ymm3,ymm7
    3ab6  vpmaddubsw ymm5,ymm5,ymm7
    3abb  vpaddw ymm12,ymm12,ymm2
    3abf  vpaddw ymm13,ymm13,ymm4
    3ac3  vpaddw ymm12,ymm12,ymm3
    3ac7  vpaddw ymm13,ymm13,ymm5
    3acb  vpmaddwd ymm12,ymm12,[rsp+120h]
    3ad4  vpmaddwd ymm13,ymm13,[rsp+120h]
    3add  vpaddd ymm8,ymm8,ymm12
    3ae2  vpaddd ymm9,ymm9,ymm13
    3ae7  prefetcht1 [rdx+700h]
    3aee  vmovdqu ymm2,[rsi+300h]
    3af6  vmovdqu ymm4,[rsi+320h]
    3afe  vpsrlw ymm3,ymm2,4
    3b03  vpsrlw ymm5,ymm4,4
    3b08  vpand ymm2,ymm2,ymm0
    3b0c  vpand ymm4,ymm4,ymm0
    3b10  vpand ymm3,ymm3,ymm0
    3b14  vpand ymm5,ymm5,ymm0
    3b18  vpshufb ymm2,ymm1,ymm2
    3b1d  vpshufb ymm4,ymm1,ymm4
    3b22  vpshufb ymm3,ymm1,ymm3
    3b27  vpshufb ymm5,ymm1,ymm5
    3b2c  vpmaddubsw ymm2,ymm2,ymm6
    3b31  vpmaddubsw ymm4,ymm4,ymm6
    3b36  vpmaddubsw ymm3,ymm3,ymm7
    3b3b  vpmaddubsw ymm5,ymm5,ymm7
    3b40  vpaddw ymm14,ymm14,ymm2
    3b44  vpaddw ymm15,ymm15,ymm4
    3b48  vpaddw ymm14,ymm14,ymm3
    3b4c  vpaddw ymm15,ymm15,ymm5
    3b50  vpmaddwd ymm14,ymm14,[rsp+120h]
    3b59  vpmaddwd ymm15,ymm15,[rsp+120h]
    3b62  vpaddd ymm10,ymm10,ymm14
    3b67  vpaddd ymm11,ymm11,ymm15
    3b6c  vbroadcastss ymm6,[r9+r8+40h]
    3b73  vpmovzxbd ymm2,[rdi]
    3b78  vpslld ymm2,ymm2,17h
    3b7d  vpaddd ymm2,ymm2,[rsp+140h]
    3b86  vpaddd ymm8,ymm8,ymm2
    3b8a  vsubps ymm8,ymm8,ymm2
    3b8e  vfmadd213ps ymm8,ymm6,[rsp]
    3b94  vmovups [rsp],ymm8
    3b99  vpmovzxbd ymm2,[rdi+8]
    3b9f  vpslld ymm2,ymm2,17h
    3ba4  vpaddd ymm2,ymm2,[rsp+140h]
    3bad  vpaddd ymm9,ymm9,ymm2
    3bb1  vsubps ymm9,ymm9,ymm2
    3bb5  vfmadd213ps ymm9,ymm6,[rsp+20h]
    3bbc  vmovups [rsp+20h],ymm9
    3bc2  vpmovzxbd ymm2,[rdi+240h]
    3bcb  vpslld ymm2,ymm2,17h
    3bd0  vpaddd ymm2,ymm2,[rsp+140h]
    3bd9  vpaddd ymm10,ymm10,ymm2
    3bdd  vsubps ymm10,ymm10,ymm2
    3be1  vfmadd213ps ymm10,ymm6,[rsp+40h]
    3be8  vmovups [rsp+40h],ymm10
    3bee  vpmovzxbd ymm2,[rdi+248h]
    3bf7  vpslld ymm2,ymm2,17h
    3bfc  vpaddd ymm2,ymm2,[rsp+140h]
    3c05  vpaddd ymm11,ymm11,ymm2
    3c09  vsubps ymm11,ymm11,ymm2
    3c0d  vfmadd213ps ymm11,ymm6,[rsp+60h]
    3c14  vmovups [rsp+60h],ymm11
    3c1a  vpbroadcastd ymm6,[r9+r8*8]
    3c20  vpbroadcastd ymm7,[r9+r8*8+4]
    3c27  prefetcht1 [rdx+80h]
    3c2e  vmovdqu ymm2,[rsi+480h]
    3c36  vmovdqu ymm4,[rsi+4A0h]
    3c3e  vpsrlw ymm3,ymm2,4
    3c43  vpsrlw ymm5,ymm4,4
    3c48  vpand ymm2,ymm2,ymm0
    3c4c  vpand ymm4,ymm4,ymm0
    3c50  vpand ymm3,ymm3,ymm0
    3c54  vpand ymm5,ymm5,ymm0
    3c58  vpshufb ymm2,ymm1,ymm2
    3c5d  vpshufb ymm4,ymm1,ymm4
    3c62  vpshufb ymm3,ymm1,ymm3
    3c67  vpshufb ymm5,ymm1,ymm5
    3c6c  vpmaddubsw ymm12,ymm2,ymm6
    3c71  vpmaddubsw ymm13,ymm4,ymm6
    3c76  vpmaddubsw ymm3,ymm3,ymm7
    3c7b  vpmaddubsw ymm5,ymm5,ymm7
    3c80  vpaddw ymm12,ymm12,ymm3
    3c84  vpaddw ymm13,ymm13,ymm5
    3c88  prefetcht1 [rdx+2C0h]
    3c8f  vmovdqu ymm2,[rsi+6C0h]
    3c97  vmovdqu ymm4,[rsi+6E0h]
    3c9f  vpsrlw ymm3,ymm2,4
    3ca4  vpsrlw ymm5,ymm4,4
    3ca9  vpand ymm2,ymm2,ymm0
    3cad  vpand ymm4,ymm4,ymm0
    3cb1  vpand ymm3,ymm3,ymm0
    3cb5  vpand ymm5,ymm5,ymm0
    3cb9  vpshufb ymm2,ymm1,ymm2
    3cbe  vpshufb ymm4,ymm1,ymm4
    3cc3  vpshufb ymm3,ymm1,ymm3
    3cc8  vpshufb ymm5,ymm1,ymm5
    3ccd  vpmaddubsw ymm14,ymm2,ymm6
    3cd2  vpmaddubsw ymm15,ymm4,ymm6
    3cd7  vpmaddubsw ymm3,ymm3,ymm7
    3cdc  vpmaddubsw ymm5,ymm5,ymm7
    3ce1  vpaddw ymm14,ymm14,ymm3
    3ce5  vpaddw ymm15,ymm15,ymm5
    3ce9  vpbroadcastd ymm6,[r9+r8*8+8]
    3cf0  vpbroadcastd ymm7,[r9+r8*8+0Ch]
    3cf7  prefetcht1 [rdx+500h]
    3cfe  vmovdqu ymm2,[rsi+4C0h]
    3d06  vmovdqu ymm4,[rsi+4E0h]
    3d0e  vpsrlw ymm3,ymm2,4
    3d13  vpsrlw ymm5,ymm4,4
    3d18  vpand ymm2,ymm2,ymm0
    3d1c  vpand ymm4,ymm4,ymm0
    3d20  vpand ymm3,ymm3,ymm0
    3d24  vpand ymm5,ymm5,ymm0
    3d28  vpshufb ymm2,ymm1,ymm2
    3d2d  vpshufb ymm4,ymm1,ymm4
    3d32  vpshufb ymm3,ymm1,ymm3
    3d37  vpshufb ymm5,ymm1,ymm5
    3d3c  vpmaddubsw ymm2,ymm2,ymm6
    3d41  vpmaddubsw ymm4,ymm4,ymm6
    3d46  vpmaddubsw ymm3,ymm3,ymm7
    3d4b  vpmaddubsw ymm5,ymm5,ymm7
    3d50  vpaddw ymm12,ymm12,ymm2
    3d54  vpaddw ymm13,ymm13,ymm4
    3d58  vpaddw ymm12,ymm12,ymm3
    3d5c  vpaddw ymm13,ymm13,ymm5
    3d60  vpmaddwd ymm8,ymm12,[rsp+120h]
    3d69  vpmaddwd ymm9,ymm13,[rsp+120h]
    3d72  vpaddd ymm8,ymm8,[rsp+100h]
    3d7b  vpaddd ymm9,ymm9,[rsp+100h]
    3d84  prefetcht1 [rdx+740h]
    3d8b  vmovdqu ymm2,[rsi+700h]
    3d93  vmovdqu ymm4,[rsi+720h]
    3d9b  vpsrlw ymm3,ymm2,4
    3da0  vpsrlw ymm5,ymm4,4
    3da5  vpand ymm2,ymm2,ymm0
    3da9  vpand ymm4,ymm4,ymm0
    3dad  vpand ymm3,ymm3,ymm0
    3db1  vpand ymm5,ymm5,ymm0
    3db5  vpshufb ymm2,ymm1,ymm2
    3dba  vpshufb ymm4,ymm1,ymm4
    3dbf  vpshufb ymm3,ymm1,ymm3
    3dc4  vpshufb ymm5,ymm1,ymm5
    3dc9  vpmaddubsw ymm2,ymm2,ymm6
    3dce  vpmaddubsw ymm4,ymm4,ymm6
    3dd3  vpmaddubsw ymm3,ymm3,ymm7
    3dd8  vpmaddubsw ymm5,ymm5,ymm7
    3ddd  vpaddw ymm14,ymm14,ymm2
    3de1  vpaddw ymm15,ymm15,ymm4
    3de5  vpaddw ymm14,ymm14,ymm3
    3de9  vpaddw ymm15,ymm15,ymm5
    3ded  vpmaddwd ymm10,ymm14,[rsp+120h]
    3df6  vpmaddwd ymm11,ymm15,[rsp+120h]
    3dff  vpaddd ymm10,ymm10,[rsp+100h]
    3e08  vpaddd ymm11,ymm11,[rsp+100h]
    3e11  vpbroadcastd ymm6,[r9+r8*8+10h]
    3e18  vpbroadcastd ymm7,[r9+r8*8+14h]
    3e1f  prefetcht1 [rdx+0C0h]
    3e26  vmovdqu ymm2,[rsi+500h]
    3e2e  vmovdqu ymm4,[rsi+520h]
    3e36  vpsrlw ymm3,ymm2,4
    3e3b  vpsrlw ymm5,ymm4,4
    3e40  vpand ymm2,ymm2,ymm0
    3e44  vpand ymm4,ymm4,ymm0
    3e48  vpand ymm3,ymm3,ymm0
    3e4c  vpand ymm5,ymm5,ymm0
    3e50  vpshufb ymm2,ymm1,ymm2
    3e55  vpshufb ymm4,ymm1,ymm4
    3e5a  vpshufb ymm3,ymm1,ymm3
    3e5f  vpshufb ymm5,ymm1,ymm5
    3e64  vpmaddubsw ymm12,ymm2,ymm6
    3e69  vpmaddubsw ymm13,ymm4,ymm6
    3e6e  vpmaddubsw ymm3,ymm3,ymm7
    3e73  vpmaddubsw ymm5,ymm5,ymm7
    3e78  vpaddw ymm12,ymm12,ymm3
    3e7c  vpaddw ymm13,ymm13,ymm5
    3e80  prefetcht1 [rdx+300h]
    3e87  vmovdqu ymm2,[rsi+740h]
    3e8f  vmovdqu ymm4,[rsi+760h]
    3e97  vpsrlw ymm3,ymm2,4
    3e9c  vpsrlw ymm5,ymm4,4
    3ea1  vpand ymm2,ymm2,ymm0
    3ea5  vpand ymm4,ymm4,ymm0
    3ea9  vpand ymm3,ymm3,ymm0
    3ead  vpand ymm5,ymm5,ymm0
    3eb1  vpshufb ymm2,ymm1,ymm2
    3eb6  vpshufb ymm4,ymm1,ymm4
    3ebb  vpshufb ymm3,ymm1,ymm3
    3ec0  vpshufb ymm5,ymm1,ymm5
    3ec5  vpmaddubsw ymm14,ymm2,ymm6
    3eca  vpmaddubsw ymm15,ymm4,ymm6
    3ecf  vpmaddubsw ymm3,ymm3,ymm7
    3ed4  vpmaddubsw ymm5,ymm5,ymm7
    3ed9  vpaddw ymm14,ymm14,ymm3
    3edd  vpaddw ymm15,ymm15,ymm5
    3ee1  vpbroadcastd ymm6,[r9+r8*8+18h]
    3ee8  vpbroadcastd ymm7,[r9+r8*8+1Ch]
    3eef  prefetcht1 [rdx+540h]
    3ef6  vmovdqu ymm2,[rsi+540h]
    3efe  vmovdqu ymm4,[rsi+560h]
    3f06  vpsrlw ymm3,ymm2,4
    3f0b  vpsrlw ymm5,ymm4,4
    3f10  vpand ymm2,ymm2,ymm0
    3f14  vpand ymm4,ymm4,ymm0
    3f18  vpand ymm3,ymm3,ymm0
    3f1c  vpand ymm5,ymm5,ymm0
    3f20  vpshufb ymm2,ymm1,ymm2
    3f25  vpshufb ymm4,ymm1,ymm4
    3f2a  vpshufb ymm3,ymm1,ymm3
    3f2f  vpshufb ymm5,ymm1,ymm5
    3f34  vpmaddubsw ymm2,ymm2,ymm6
    3f39  vpmaddubsw ymm4,ymm4,ymm6
    3f3e  vpmaddubsw ymm3,ymm3,ymm7
    3f43  vpmaddubsw ymm5,ymm5,ymm7
    3f48  vpaddw ymm12,ymm12,ymm2
    3f4c  vpaddw ymm13,ymm13,ymm4
    3f50  vpaddw ymm12,ymm12,ymm3
    3f54  vpaddw ymm13,ymm13,ymm5
    3f58  vpmaddwd ymm12,ymm12,[rsp+120h]
    3f61  vpmaddwd ymm13,ymm13,[rsp+120h]
    3f6a  vpaddd ymm8,ymm8,ymm12
    3f6f  vpaddd ymm9,ymm9,ymm13
    3f74  prefetcht1 [rdx+780h]
    3f7b  vmovdqu ymm2,[rsi+780h]
    3f83  vmovdqu ymm4,[rsi+7A0h]
    3f8b  vpsrlw ymm3,ymm2,4
    3f90  vpsrlw ymm5,ymm4,4
    3f95  vpand ymm2,ymm2,ymm0
    3f99  vpand ymm4,ymm4,ymm0
    3f9d  vpand ymm3,ymm3,ymm0
    3fa1  vpand ymm5,ymm5,ymm0
    3fa5  vpshufb ymm2,ymm1,ymm2
    3faa  vpshufb ymm4,ymm1,ymm4
    3faf  vpshufb ymm3,ymm1,ymm3
    3fb4  vpshufb ymm5,ymm1,ymm5
    3fb9  vpmaddubsw ymm2,ymm2,ymm6
    3fbe  vpmaddubsw ymm4,ymm4,ymm6
    3fc3  vpmaddubsw ymm3,ymm3,ymm7
    3fc8  vpmaddubsw ymm5,ymm5,ymm7
    3fcd  vpaddw ymm14,ymm14,ymm2
    3fd1  vpaddw ymm15,ymm15,ymm4
    3fd5  vpaddw ymm14,ymm14,ymm3
    3fd9  vpaddw ymm15,ymm15,ymm5
    3fdd  vpmaddwd ymm14,ymm14,[rsp+120h]
    3fe6  vpmaddwd ymm15,ymm15,[rsp+120h]
    3fef  vpaddd ymm10,ymm10,ymm14
    3ff4  vpaddd ymm11,ymm11,ymm15
    3ff9  vbroadcastss ymm6,[r9+r8+40h]
    4000  vpmovzxbd ymm2,[rdi+480h]
    4009  vpslld ymm2,ymm2,17h
    400e  vpaddd ymm2,ymm2,[rsp+140h]
    4017  vpaddd ymm8,ymm8,ymm2
    401b  vsubps ymm8,ymm8,ymm2
    401f  vfmadd213ps ymm8,ymm6,[rsp+80h]
    4029  vmovups [rsp+80h],ymm8
    4032  vpmovzxbd ymm2,[rdi+488h]
    403b  vpslld ymm2,ymm2,17h
    4040  vpaddd ymm2,ymm2,[rsp+140h]
    4049  vpaddd ymm9,ymm9,ymm2
    404d  vsubps ymm9,ymm9,ymm2
    4051  vfmadd213ps ymm9,ymm6,[rsp+0A0h]
    405b  vmovups [rsp+0A0h],ymm9
    4064  vpmovzxbd ymm2,[rdi+6C0h]
    406d  vpslld ymm2,ymm2,17h
    4072  vpaddd ymm2,ymm2,[rsp+140h]
    407b  vpaddd ymm10,ymm10,ymm2
    407f  vsubps ymm10,ymm10,ymm2
    4083  vfmadd213ps ymm10,ymm6,[rsp+0C0h]
    408d  vmovups [rsp+0C0h],ymm10
    4096  vpmovzxbd ymm2,[rdi+6C8h]
    409f  vpslld ymm2,ymm2,17h
    40a4  vpaddd ymm2,ymm2,[rsp+140h]
    40ad  vpaddd ymm11,ymm11,ymm2
    40b1  vsubps ymm11,ymm11,ymm2
    40b5  vfmadd213ps ymm11,ymm6,[rsp+0E0h]
    40bf  vmovups [rsp+0E0h],ymm11
    40c8  add rdi,10h
    40cc  add rsi,100h
    40d3  add rdx,100h
    40da  add r8,4
    40de  cmp r8,8
    40e2  jne near 0000000000003754h
    40e8  mov rsi,[rsp+160h]
    40f0  mov r8,[rsp+168h]
    40f8  vmovups ymm8,[rsp]
    40fd  vmovups [rsi],ymm8
    4101  vmovups ymm8,[rsp+20h]
    4107  vmovups [rsi+20h],ymm8
    410c  vmovups ymm8,[rsp+80h]
    4115  vmovups [rsi+40h],ymm8
    411a  vmovups ymm8,[rsp+0A0h]
    4123  vmovups [rsi+60h],ymm8
    4128  vmovups ymm8,[rsp+40h]
    412e  vmovups [rsi+80h],ymm8
    4136  vmovups ymm8,[rsp+60h]
    413c  vmovups [rsi+0A0h],ymm8
    4144  vmovups ymm8,[rsp+0C0h]
    414d  vmovups [rsi+0C0h],ymm8
    4155  vmovups ymm8,[rsp+0E0h]
    415e  vmovups [rsi+0E0h],ymm8
    4166  add rsp,170h
    416d  vzeroupper
    4170  ret
    4171  (bad)
    4175  add byte [rax+18080h],1
    417c  add [rax],al
    417e  add [rax+0Bh],al
    4181  hlt
    4182  (bad)
    4184  dec dword [rcx*1+12100F0Eh]
    418b  adc al,18h
    418d  or al,0Bh
    418f  or cl,[rcx]
    4191  or [rsi],al
    4193  add al,0
