"""Rates of the kinds of decode steps relative to the logits, medians over processes that take turns: python3 compare.py ROUNDS PLAN KERNMILL KERNMILL"""
import json,subprocess,sys,statistics as st
rounds, PLAN, *bins = sys.argv[1:]; rounds = int(rounds); acc={b:{} for b in bins}
for r in range(rounds):
    for b in (bins if r%2==0 else bins[::-1]):
        o=subprocess.run([b,"bench",PLAN,"--regenerate","--threads","2","--pp","0","--tg","48","--repeat","3","--profile","--json","-q"],capture_output=True,text=True).stdout
        d=json.loads(o); s={x['step']:x for x in d['results'][0]['steps']}
        ref=s['logits']['gb_per_s']
        for k in ('qkv','linear_residual','moe_gate_up','moe_down'):
            acc[b].setdefault(k,[]).append(s[k]['gb_per_s']/ref)
            busy=sum(s[k]['busy_ms'])/2; acc[b].setdefault(k+' busy',[]).append(s[k]['weight_bytes']/busy/1e6/ref)
        acc[b].setdefault('run/read',[]).append(st.mean(d['results'][0]['runs'])*d['results'][0]['bytes_per_token']/1e9/st.mean(d['bandwidth']['reads'][1:]))
for b in bins:
    print(b,{k:round(st.median(v),3) for k,v in acc[b].items()})
