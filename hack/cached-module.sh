# Sourced, at the root of the checkout, by scripts that build programs from a module of their
# own. The programs are kept outside the checkout, in a directory named by the hash of what
# decides them, so that a fresh clone on the same machine is warm.
# usage: . hack/cached-module.sh NAME MODULE
# If the programs are there it prints their directory and ends the script. Otherwise the
# script builds them into $out, from within the module, and calls complete.
out=${SWIFTLET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swiftlet}/$1
out+=-$(cat "$2/go.mod" "$2/go.sum" "hack/${0##*/}" hack/cached-module.sh <(go version) | sha256sum | cut -c1-16)
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }
mkdir -p "$out"
exec 9>"$out/.lock"; flock 9   # two clones at once share one build
[ -e "$out/.complete" ] && { echo "$out"; exit 0; }

cd "$2"
for try in 1 2 3 4 5; do # a proxy may answer "too many requests"; a later try goes through
  go mod download >&2 && break
  [ $try = 5 ] && { echo "${0##*/}: downloading the modules failed" >&2; exit 1; }
  echo "download failed, trying again in ${try}0 s" >&2; sleep ${try}0
done

# complete prints the directory of the programs.
complete() {
  touch "$out/.complete"
  echo "$out"
}
