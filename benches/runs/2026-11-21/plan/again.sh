#!/bin/bash
# Compile beside cp, start, and kills at full size. Needs root for the page cache, 28 GB of disk, and in D: synth-20b and ids.json.
# rss.sh samples /proc/PID/status every 50 ms; rt.py prints what `run --json` says of time and memory.
D=${D:?a directory}; C=$D/synth-20b; S=model-specs/gpt-oss-20b.toml; K=target/release/kernmill
drop() { sync; echo 3 > /proc/sys/vm/drop_caches; }
now() { date +%s.%N; }
for i in 1 2 3; do
  drop; s=$(now); mkdir $D/cpdst; cp $C/* $D/cpdst/; for f in $D/cpdst/*; do sync $f; done; e=$(now); echo "cp $(echo "$e-$s" | bc) s"; rm -rf $D/cpdst
  rm -f $D/20b.plan; drop; s=$(now); $D/rss.sh $K compile $S --weights $C -o $D/20b.plan -q; sync $D/20b.plan; e=$(now); echo "compile $(echo "$e-$s" | bc) s"
done
ls -l $D/20b.plan | awk '{print $5}'
H=$(sha256sum $D/20b.plan | cut -c1-64); echo "sha $H"
drop
for i in 1 2 3; do $K run $D/20b.plan --tokens $D/ids.json -n 8 --ignore-end --threads 2 --json > $D/r_$i.json 2>$D/r_err; echo "ids $i: $(python3 $D/rt.py $D/r_$i.json)"; done
for i in 1 2 3; do $K run $D/20b.plan --prompt "hello world this is" -n 8 --ignore-end --threads 2 --json > $D/rt_$i.json 2>$D/r_err; echo "text $i: $(python3 $D/rt.py $D/rt_$i.json)"; done
rm $D/20b.plan; mkdir -p $D/killed
for i in 1 2 3; do t=$(python3 -c 'import random; print(round(random.uniform(1,22),1))'); $K compile $S --weights $C -o $D/killed/20b.plan -q & P=$!; sleep $t; kill -9 $P; wait $P 2>/dev/null; echo "killed after $t s; left: $(ls -la $D/killed | tail -n +4 | awk '{print $5, $9}')"; df -h / | tail -1 | awk '{print $4}'; rm -f $D/killed/*; done
$K compile $S --weights $C -o $D/20b.plan -q; echo rc $?; sha256sum $D/20b.plan; 
$K inspect $D/20b.plan --verify 2>&1 | tail -2
