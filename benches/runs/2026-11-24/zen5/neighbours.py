"""Decode's share of the reads just before and after it, by how fast those are, for binaries in turn: python3 reg.py ROUNDS PLAN KERNMILL KERNMILL"""
import json,subprocess,sys,statistics as st
rounds, PLAN, *bins = sys.argv[1:]; rounds=int(rounds); acc={b:[] for b in bins}; best={b:[] for b in bins}
for r in range(rounds):
    for b in (bins if r%2==0 else bins[::-1]):
        o=subprocess.run([b,"bench",PLAN,"--regenerate","--threads","2","--pp","0","--tg","24","--repeat","8","--json","-q"],capture_output=True,text=True).stdout
        d=json.loads(o); x=d['results'][0]; reads=d['bandwidth']['reads']
        best[b].append((x['percent_of_bound'],max(reads)))
        for i,run in enumerate(x['runs']):
            a,c=reads[i],reads[i+1]
            if abs(a/c-1)<0.08: acc[b].append(((a+c)/2, run*x['bytes_per_token']/1e9/((a+c)/2)))
for b in bins:
    print(b)
    for lo,hi in ((0,45),(45,60),(60,70),(70,100)):
        v=[q for m,q in acc[b] if lo<=m<hi]
        if len(v)>1: print('   %3d..%3d n %3d median %.3f [%.3f, %.3f]'%(lo,hi,len(v),st.median(v),*st.quantiles(v,n=4)[::2]))
    print('   of bound', [(round(p,1),round(m)) for p,m in best[b]])
