# shellcheck shell=sh
# Starts tools/main.rb on any Ruby that is at hand. Sourced by the commands in bin/.

# Prints the first Ruby that is new enough for the tools. HEDDLE_LOOKING tells
# bin/ruby, should it be the one on PATH, that it is not meant.
host_ruby() {
  cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/heddle
  test='exit RUBY_VERSION >= "3.0"'
  for ruby in ruby /usr/bin/ruby "${HEDDLE_RUBY:-}" "$cache"/rubies/*/bin/ruby; do
    if [ -n "$ruby" ] && RUBYOPT='' HEDDLE_LOOKING=1 "$ruby" --disable-gems -e "$test" 2>/dev/null; then
      printf '%s' "$ruby"
      return
    fi
  done
  echo 'heddle: no Ruby >= 3.0 to run the set-up with: apt-get install ruby (as root)' >&2
  return 1
}

# What the user's RUBYOPT says is for the program, not for the tools.
launch() {
  root=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd -P) || exit
  host=$(host_ruby) || exit
  export HEDDLE_USER_RUBYOPT="${RUBYOPT-}"
  unset RUBYOPT RUBYLIB
  exec "$host" --disable-gems "$root/tools/main.rb" "$@"
}
