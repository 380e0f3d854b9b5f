#!/bin/bash
# Looks for known vulnerabilities in the agent, in the programs of the bundle and in those of the lone node's API. Without a database it
# checks nothing and says so.
# usage: vulncheck.sh DATABASE    an address, file://DIRECTORY or DIRECTORY
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} db=${1:-} code=0
[ -n "$db" ] || { echo "vulncheck: not checked: no database (VULNDB=)"; exit 0; }
[[ $db == *://* ]] || db=file://$(realpath "$db")
scanner=$("$go" tool -n govulncheck) || exit 1
echo "swiftlet" && "$scanner" -db "$db" ./cmd/swiftlet || code=1
# The bundle's packages are tools of its module.
echo "bundle" && (cd bundle && "$go" list tool | xargs "$scanner" -db "$db") || code=1
echo "apiserver" && (cd apiserver && { echo .; echo ./dns; "$go" list tool; } | xargs "$scanner" -db "$db") || code=1
[ $code = 0 ] || echo "vulncheck: found vulnerabilities, or could not check"
exit $code
