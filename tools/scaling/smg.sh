#!/bin/sh
# SMG before several `kernmill serve`: docs/user/scaling.md says why each option is here.
#
#   PORT=8000 KEYS=keys.txt sh smg.sh http://10.0.0.1:8080 http://10.0.0.2:8080
#
# KEYS is the servers' file of keys, with keys as they are (no blake3:). With the one called `gateway`, SMG itself
# asks servers for their models and loads. The others are those of clients. Without KEYS, none is needed.
set -- --worker-urls "$@"
if [ -n "$KEYS" ]; then
    while read -r name key _; do
        case $name in
        '' | '#'*) ;;
        gateway) set -- "--api-key=$key" "$@" ;;
        *) set -- "--tenant-api-key=$name:$key" "$@" ;;
        esac
    done <"$KEYS"
fi
exec smg launch \
    --host="${HOST:-127.0.0.1}" --port="${PORT:-8000}" \
    --prometheus-host=127.0.0.1 --prometheus-port="${STATUS_PORT:-29000}" \
    --policy=consistent_hashing --routing-key-headers=x-routing-key \
    --health-check-endpoint=/ready --health-check-interval-secs=1 --health-check-timeout-secs=2 \
    --health-failure-threshold=2 --health-success-threshold=2 \
    --retry-max-retries=6 --retry-initial-backoff-ms=50 --retry-max-backoff-ms=2000 \
    --max-buffered-request-bytes=8388608 \
    --cb-timeout-duration-secs=2 --cb-success-threshold=1 \
    --request-timeout-secs=1800 \
    --disable-tokenizer-autoload --history-backend=none \
    "$@"
