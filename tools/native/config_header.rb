# frozen_string_literal: true

module Tools
  module Native
    # Ruby's config.h for a target, made of the config.h of the same Ruby on this machine. Both are 64-bit systems, so
    # nearly all of it holds for both. The compiler decides which headers exist there, and refuses other sizes.
    class ConfigHeader
      # The name in config.h => that of the compiler.
      SIZES = { "INT" => "INT", "SHORT" => "SHORT", "LONG" => "LONG", "LONG_LONG" => "LONG_LONG", "FLOAT" => "FLOAT",
                "DOUBLE" => "DOUBLE", "VOIDP" => "POINTER", "SIZE_T" => "SIZE_T", "PTRDIFF_T" => "PTRDIFF_T",
                "__INT128" => "INT128" }.freeze
      # What configure found on this machine, and headers do not need.
      LOCAL = /^#define (COROUTINE_H|USE_YJIT|USE_RJIT|USE_ZJIT|STACK_END_ADDRESS|SET_\w+_THREAD_NAME\(.*?\)) .*\n/
      # What differs on another system, of all that Ruby's public headers and the extension ask for; nil: the macro is
      # not defined there.
      DIFFERENCES = {
        "darwin" => {
          "HAVE_EACCESS" => nil, "HAVE_EXPLICIT_BZERO" => nil, "HAVE_GNU_QSORT_R" => nil,
          "HAVE_STRUCT_STATX_STX_BTIME" => nil, "RUBY_ALIAS_FUNCTION_TYPE" => nil, "RUBY_ALIAS_FUNCTION_VOID" => nil,
          "HAVE_STRLCAT" => "1", "HAVE_STRLCPY" => "1",
          "NUM2OFFT(v)" => "NUM2LL(v)", "OFFT2NUM(v)" => "LL2NUM(v)", "PRI_OFFT_PREFIX" => "PRI_LL_PREFIX"
        }.freeze,
        "freebsd" => {
          "HAVE_CRYPT" => nil, "HAVE_GNU_QSORT_R" => nil, "HAVE_STRUCT_STATX_STX_BTIME" => nil,
          "HAVE_STRLCAT" => "1", "HAVE_STRLCPY" => "1"
        }.freeze
      }.freeze

      # @param text [String] config.h of this machine
      # @param platform [String] RUBY_PLATFORM of the target
      def initialize(text, platform)
        @text = text
        @platform = platform
      end

      # @return [String]
      def to_s
        own = @text.gsub(LOCAL, "").sub(/^#define RUBY_PLATFORM .*/, "#define RUBY_PLATFORM \"#{@platform}\"")
        last = own.rindex(/^#endif/) || own.size
        own.insert(last, (absent_headers + differences + size_checks).map { |line| "#{line}\n" }.join)
      end

      private

      # HAVE_SYS_EPOLL_H stands for sys/epoll.h, HAVE_NET_SOCKET_H perhaps for net_socket.h.
      def absent_headers
        @text.scan(/^#define (HAVE_(\w+)_H) 1$/).uniq.flat_map do |macro, name|
          path = name.downcase
          found = [path, path.tr("_", "/"), path.sub("_", "/")].uniq.map { |one| "__has_include(<#{one}.h>)" }
          ["#if !(#{found.join(" || ")})", "#undef #{macro}", "#endif"]
        end
      end

      def differences
        DIFFERENCES.fetch(@platform[/darwin|freebsd/], {}).flat_map do |macro, value|
          ["#undef #{macro[/\w+/]}", *("#define #{macro} #{value}" if value)]
        end
      end

      def size_checks
        SIZES.flat_map do |own, compiler|
          size = @text[/^#define SIZEOF_#{own} (\d+)$/, 1]
          size ? ["#if #{size} != __SIZEOF_#{compiler}__", "#error SIZEOF_#{own}", "#endif"] : []
        end
      end
    end
  end
end
