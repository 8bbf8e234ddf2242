#include <immintrin.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>
static struct __attribute__((packed)) { uint8_t p,s,r[14]; uint16_t b[16]; uint8_t rows[16]; } c;
static __attribute__((aligned(64))) uint16_t A[16*32], B[16*32]; static __attribute__((aligned(64))) float C[256];
static uint16_t pow2(int e,int neg){ return (uint16_t)((e+127)<<7 | neg<<15); }
int main(){ syscall(SYS_arch_prctl,0x1023,18); c.p=1; for(int i=0;i<8;i++){c.b[i]=64;c.rows[i]=16;} __asm__ volatile("":::"memory"); _tile_loadconfig(&c);
 for(int t=0;t<4;t++){ memset(A,0,sizeof A);memset(B,0,sizeof B);memset(C,0,sizeof C);
 // row 0, column 0: k=0 and k=2 (both even)
 A[0]=pow2(-63,0); B[0]=pow2(-63,0); int e=t==0?-200:t==1?-76:t==2?-75:-70; if(t){A[2]=pow2(e,0); B[1*32+0]=pow2(e,1);} 
 if(t==3){}
 _tile_zero(0); _tile_loadd(1,A,64); _tile_loadd(2,B,64); _tile_dpbf16ps(0,1,2); _tile_stored(0,C,64);
 uint32_t u; memcpy(&u,&C[0],4); printf("2^-126 %s: %08x\n", t==0?"alone":t==1?"- 2^-152":t==2?"- 2^-150":"- 2^-140", u); }
}
