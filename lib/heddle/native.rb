# frozen_string_literal: true

require "rbconfig"
require "socket"

# The native extension: bin/build keeps one for each Ruby in a folder named after its ABI, `gem install` makes one.
native = "heddle/#{RbConfig::CONFIG["ruby_version"]}/heddle_native"
require $LOAD_PATH.resolve_feature_path(native) ? native : "heddle/heddle_native"
