# frozen_string_literal: true

require "rbconfig"
require "socket"
require "timeout" # the extension needs it, too, and would not find a newer one that is installed as a gem

# Loads the native extension: bin/build keeps one for each Ruby in a folder named after its ABI, `gem install` makes
# one.
native = "heddle/#{RbConfig::CONFIG["ruby_version"]}/heddle_native"
require $LOAD_PATH.resolve_feature_path(native) ? native : "heddle/heddle_native"
