# frozen_string_literal: true

require_relative "../../heddle"
require "net/http"
require_relative "../internal/replace"
require_relative "known_method"
require_relative "net_http/body"
require_relative "net_http/headers"
require_relative "net_http/start"

module Heddle
  # Libraries that become faster on demand, each by a `require` of its own. They behave as before.
  module Accelerate
    # `require "heddle/accelerate/net_http"`: Net::HTTP takes less CPU time. Some of its methods are replaced, in tasks
    # and elsewhere. Their results, their errors and the bytes that they send stay the same.
    #
    # A part is left out if a method that it would replace is not a known version, because the gem net-http has another
    # version, or somebody has patched the method. {left_out} names the parts that are left out.
    #
    # @example
    #   require "heddle/accelerate/net_http"
    #   Heddle::Accelerate::NetHTTP.active # => [:body, :field_names, :fields, :header, :start]
    module NetHTTP
      # Says to CoreExt how the replaced methods are kept: as __heddle_plain_METHOD.
      Kept = Struct.new(:kept, :kept_visibility)
      private_constant :Body, :FieldNames, :Fields, :Header, :Kept, :Start

      @active = []
      @left_out = {}

      class << self
        # @return [Array<Symbol>] the names of the parts that are in place
        attr_reader :active

        # @return [Hash{Symbol => String}] the names of the parts that are left out, each with the reason
        attr_reader :left_out

        private

        # Puts the methods of a module in the place of Net::HTTP's.
        #
        # @param name [Symbol] the name of the part
        # @param owner [Module] the module in which methods are replaced
        # @param methods [Module] the new methods
        # @param known [Hash{String => Array<String>}] the methods that it replaces or relies on, each with the results
        #   of KnownMethod.digest for the known versions
        # @param buffer [Module, nil] further methods for Net::BufferedIO
        def part(name, owner, methods, known, buffer: nil)
          strange = known.reject { |place, digests| digests.include?(KnownMethod.digest(place)) }.keys
          if strange.empty?
            ::Net::BufferedIO.include(buffer) if buffer
            CoreExt.replace(Kept.new("__heddle_plain_", :private), owner, methods)
            @active << name
          else
            @left_out[name] = "not the method that is known: #{strange.join(", ")}"
          end
        end
      end

      # Some methods have two known texts: one of Ruby 3.3 and later, and one of net-http 0.9 and 0.10 with net-protocol
      # 0.2 and 0.4.
      part(:body, ::Net::BufferedIO, Body,
           { "Net::BufferedIO#read" => %w[9c80338ed8f0 c8875ada8443],
             "Net::BufferedIO#rbuf_fill" => %w[dc163d6337a6],
             "Net::BufferedIO#rbuf_consume" => %w[edd7ae169f45] }, buffer: Body::Buffer)
      part(:field_names, ::Net::HTTPHeader, FieldNames,
           { "Net::HTTPHeader#capitalize" => %w[0397370f0d61 3f168eb6631b] })
      part(:fields, ::Net::HTTPHeader, Fields,
           { "Net::HTTPHeader#add_field" => %w[20474b1c09dc 76a50ceda8dd],
             "Net::HTTPHeader#set_field" => %w[91a21f8680bf d9cdacf01175] })
      part(:header, ::Net::HTTPResponse.singleton_class, Header,
           { "Net::HTTPResponse.each_response_header" => %w[0c677da640dd af6ce1b56f6b],
             "Net::BufferedIO#readuntil" => %w[7cabed963e84 5844722442b6],
             "Net::BufferedIO#rbuf_consume" => %w[edd7ae169f45],
             "Net::BufferedIO#rbuf_flush" => %w[3c24904886eb] }, buffer: Header::Buffer)
      part(:start, ::Net::HTTP.singleton_class, Start,
           { "Net::HTTP.start" => %w[db9f2a8dee7a] })

      Ractor.make_shareable(@active)
      Ractor.make_shareable(@left_out)
    end
  end
end
