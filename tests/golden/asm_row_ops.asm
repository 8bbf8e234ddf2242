map_n32_1e3898d682e799f0:
       0  lea rax,[rel 200h]
       7  vbroadcastss zmm29,[rax]
       d  vbroadcastss zmm28,[rax+4]
      14  vbroadcastss zmm27,[rax+8]
      1b  vbroadcastss zmm26,[rax+0Ch]
      22  vbroadcastss zmm25,[rax+10h]
      29  vbroadcastss zmm24,[rax+14h]
      30  vbroadcastss zmm23,[rax+18h]
      37  vbroadcastss zmm31,[rax+1Ch]
      3e  vbroadcastss zmm22,[rax+20h]
      45  vbroadcastss zmm21,[rax+24h]
      4c  vbroadcastss zmm20,[rax+28h]
      53  vbroadcastss zmm30,[rax+2Ch]
      5a  vbroadcastss zmm19,[rax+30h]
      61  vbroadcastss zmm18,[rax+34h]
      68  vbroadcastss zmm17,[rax+38h]
      6f  test rcx,rcx
      72  je near 00000000000001EDh
      78  vmovups zmm0,[rsi]
      7e  vminps zmm0,zmm0,zmm21
      84  vsubps zmm1,zmm29,zmm0
      8a  vminps zmm2,zmm1,zmm20
      90  vmovups zmm3,zmm30
      96  vfmadd231ps zmm3,zmm2,zmm22
      9c  vsubps zmm4,zmm3,zmm30
      a2  vfmadd231ps zmm2,zmm4,zmm18
      a8  vfmadd231ps zmm2,zmm4,zmm19
      ae  vmovups zmm4,zmm27
      b4  vfmadd231ps zmm4,zmm28,zmm2
      ba  vfmadd213ps zmm4,zmm2,zmm26
      c0  vfmadd213ps zmm4,zmm2,zmm25
      c6  vfmadd213ps zmm4,zmm2,zmm24
      cc  vfmadd213ps zmm4,zmm2,zmm23
      d2  vfmadd213ps zmm4,zmm2,zmm31
      d8  vfmadd213ps zmm4,zmm2,zmm31
      de  vpslld zmm2,zmm3,17h
      e5  vpaddd zmm2,zmm2,zmm4
      eb  vcmpnltps k1,zmm1,zmm17
      f2  vmovaps zmm3{k1}{z},zmm2
      f8  vaddps zmm1,zmm31,zmm3
      fe  vdivps zmm1,zmm31,zmm1
     104  vmulps zmm0,zmm0,zmm1
     10a  vmovups zmm1,[rdx]
     110  vaddps zmm1,zmm1,zmm31
     116  vmulps zmm0,zmm0,zmm1
     11c  vmovups [rdi],zmm0
     122  vmovups zmm0,[rsi+40h]
     129  vminps zmm0,zmm0,zmm21
     12f  vsubps zmm1,zmm29,zmm0
     135  vminps zmm2,zmm1,zmm20
     13b  vmovups zmm3,zmm30
     141  vfmadd231ps zmm3,zmm2,zmm22
     147  vsubps zmm4,zmm3,zmm30
     14d  vfmadd231ps zmm2,zmm4,zmm18
     153  vfmadd231ps zmm2,zmm4,zmm19
     159  vmovups zmm4,zmm27
     15f  vfmadd231ps zmm4,zmm28,zmm2
     165  vfmadd213ps zmm4,zmm2,zmm26
     16b  vfmadd213ps zmm4,zmm2,zmm25
     171  vfmadd213ps zmm4,zmm2,zmm24
     177  vfmadd213ps zmm4,zmm2,zmm23
     17d  vfmadd213ps zmm4,zmm2,zmm31
     183  vfmadd213ps zmm4,zmm2,zmm31
     189  vpslld zmm2,zmm3,17h
     190  vpaddd zmm2,zmm2,zmm4
     196  vcmpnltps k1,zmm1,zmm17
     19d  vmovaps zmm3{k1}{z},zmm2
     1a3  vaddps zmm1,zmm31,zmm3
     1a9  vdivps zmm1,zmm31,zmm1
     1af  vmulps zmm0,zmm0,zmm1
     1b5  vmovups zmm1,[rdx+40h]
     1bc  vaddps zmm1,zmm1,zmm31
     1c2  vmulps zmm0,zmm0,zmm1
     1c8  vmovups [rdi+40h],zmm0
     1cf  add rdi,100h
     1d6  add rsi,100h
     1dd  add rdx,100h
     1e4  dec rcx
     1e7  jne near 0000000000000078h
     1ed  vzeroupper
     1f0  ret
     1f1  add [rax],al
     1f3  add [rax],al
     1f5  add [rax],al
     1f7  add [rax],al
     1f9  add [rax],al
     1fb  add [rax],al
     1fd  add [rax],al
     1ff  add [rax],al
     201  add [rax],al
     203  add [rdi+69h],ah
     206  push rax
     207  cmp esi,ecx
     209  mov r15b,3Ah
     20c  or [rcx-563EC3F8h],cl
     212  sub bh,[rel 3E2AACC2h]
     218  add [rax],al
     21a  add [rdi],bh
     21c  add [rax],al
     21e  cmp byte [rdi],3Bh
     221  stosb
     222  mov eax,0E000003Fh
     227  add [rax],al
     22a  mov al,42h
     22c  add [rax],al
     22e  (bad)
     236  xor [rdi-3D520000h],edi

quantize_q8:
     240  lea rax,[rel 381h]
     247  vpxord zmm15,zmm15,zmm15
     24d  vpbroadcastd zmm14,[rax+4]
     254  vpbroadcastd zmm13,[rax]
     25a  vpbroadcastd zmm12,[rax+8]
     261  vpbroadcastd zmm11,[rax+0Ch]
     268  vpbroadcastd zmm10,[rax+10h]
     26f  test r8,r8
     272  je near 000000000000037Dh
     278  vmovups zmm0,[rdi]
     27e  vmovups zmm1,[rdi+40h]
     285  vpandd zmm4,zmm0,zmm13
     28b  vpandd zmm5,zmm1,zmm13
     291  vpmaxsd zmm4,zmm4,zmm5
     297  vextracti64x4 ymm5,zmm4,1
     29e  vpmaxsd ymm4,ymm4,ymm5
     2a3  vextracti128 xmm5,ymm4,1
     2a9  vpmaxsd xmm4,xmm4,xmm5
     2ae  vpshufd xmm5,xmm4,4Eh
     2b3  vpmaxsd xmm4,xmm4,xmm5
     2b8  vpshufd xmm5,xmm4,0B1h
     2bd  vpmaxsd xmm4,xmm4,xmm5
     2c2  vdivss xmm5,xmm4,xmm14
     2c7  vmovss [rdx],xmm5
     2cb  vcmpneqps xmm5,xmm4,xmm15
     2d1  vdivps xmm4,xmm14,xmm4
     2d5  vandps xmm4,xmm4,xmm5
     2d9  vbroadcastss zmm4,xmm4
     2df  vmulps zmm0,zmm0,zmm4
     2e5  vaddps zmm0,zmm0,zmm12
     2eb  vpsubd zmm0,zmm0,zmm12
     2f1  vpmaxsd zmm0,zmm0,zmm11
     2f7  vpminsd zmm0,zmm0,zmm10
     2fd  vpmovdb xmm5,zmm0
     303  vmovdqu [rsi],xmm5
     307  vmulps zmm1,zmm1,zmm4
     30d  vaddps zmm1,zmm1,zmm12
     313  vpsubd zmm1,zmm1,zmm12
     319  vpmaxsd zmm1,zmm1,zmm11
     31f  vpminsd zmm1,zmm1,zmm10
     325  vpmovdb xmm5,zmm1
     32b  vmovdqu [rsi+10h],xmm5
     330  vpaddd zmm4,zmm0,zmm1
     336  vextracti64x4 ymm5,zmm4,1
     33d  vpaddd ymm4,ymm4,ymm5
     341  vextracti128 xmm5,ymm4,1
     347  vpaddd xmm4,xmm4,xmm5
     34b  vpshufd xmm5,xmm4,4Eh
     350  vpaddd xmm4,xmm4,xmm5
     354  vpshufd xmm5,xmm4,0B1h
     359  vpaddd xmm4,xmm4,xmm5
     35d  vmovd [rcx],xmm4
     361  add rdi,80h
     368  add rsi,20h
     36c  add rdx,4
     370  add rcx,4
     374  dec r8
     377  jne near 0000000000000278h
     37d  vzeroupper
     380  ret
     381  (bad)
     383  (bad)
     385  add [rax],al
     387  inc byte [rdx]
     38a  add [rax+4Bh],al
     38d  cmp bh,0FFh
     390  (bad)
     392  add [rax],al
     394  add [rax],al
     396  add [rax],al
     398  add [rax+rax],al
     39b  add [rax],al
     39d  add [rax],eax
     39f  add [rax],al
     3a1  add eax,2000000h
     3a6  add [rax],al
     3a8  add [rsi],al
     3aa  add [rax],al
     3ac  add [rbx],al
     3ae  add [rax],al
     3b0  add [rdi],al
     3b2  add [rax],al
     3b4  (bad)
