"""Tokens/s of several sequences, and the rates of the kinds of steps, of processes that take turns: python3 batch.py ROUNDS PLAN "--batch 8 --tg 16" KERNMILL KERNMILL"""
import json,subprocess,sys,statistics as st
rounds,PLAN,extra,*bins=sys.argv[1:]
acc={b:{} for b in bins}
for r in range(int(rounds)):
    for b in (bins if r%2==0 else bins[::-1]):
        o=subprocess.run([b,"bench",PLAN,"--regenerate","--threads","2","--pp","0",*extra.split(),"--repeat","5","--profile","--json","-q"],capture_output=True,text=True)
        try: d=json.loads(o.stdout)
        except Exception: print(o.stderr); raise
        x=d['results'][-1]
        a=acc[b]
        a.setdefault('t/s',[]).append(st.median(x['runs']))
        reads=d['bandwidth']['reads']
        a.setdefault('run/meanread',[]).append(st.mean(x['runs'])/x.get('batch',1)*x['bytes_per_token']*x.get('batch',1)/1e9/st.mean(reads[1:]))
        for s in [s for s in x['steps'] if 'gb_per_s' in s]:
            a.setdefault(s['step']+' GB/s',[]).append(s['gb_per_s'])
        print(b,round(a['t/s'][-1],2),round(a['run/meanread'][-1],3),[round(q,1) for q in reads],{k:round(v[-1],1) for k,v in a.items() if 'GB/s' in k},flush=True)
for b in bins: print(b,{k:round(st.median(v),3) for k,v in acc[b].items()})
