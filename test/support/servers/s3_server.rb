# frozen_string_literal: true

require "digest"
require "support/http_server"

module TestSupport
  # As much of S3 as the tests need, for whatever bucket: objects are put, also in parts, got and listed. An object
  # "late/0.2/7" need not be put: it is "7", and its answer takes 0.2 seconds.
  class S3Server < HttpServer
    PAGE = 10

    def initialize
      @objects = {}
      @uploads = {}
      super
    end

    # @return [Integer] how many uploads in parts have begun, and neither come to their end nor been given up
    def unfinished = @uploads.size

    private

    Request = Struct.new(:verb, :key, :query, :headers, :body)
    private_constant :Request

    def respond(socket, _)
      request = read(socket) or return
      wait_for_the_end_of_a_pause
      status, headers, body = answer(request)
      lines = { "Content-Length" => body.bytesize, **headers }.map { |name, value| "#{name}: #{value}\r\n" }
      body = "" if request.verb == "HEAD"
      socket.write("HTTP/1.1 #{status}\r\n#{lines.join}\r\n#{body}")
    end

    def read(socket)
      verb, target = socket.gets&.split
      return unless verb

      headers = {}
      while (line = socket.gets) && line != "\r\n"
        name, value = line.chomp.split(": ", 2)
        headers[name.downcase] = value
      end
      socket.write("HTTP/1.1 100 Continue\r\n\r\n") if headers["expect"]
      path, query = target.split("?", 2)
      Request.new(verb, path.split("/", 3)[2].to_s, URI.decode_www_form(query.to_s).to_h, headers,
                  socket.read(headers["content-length"].to_i))
    end

    def answer(request)
      case request.verb
      when "GET", "HEAD" then request.key.empty? ? list(request.query) : get(request.key)
      when "PUT" then put(request)
      when "POST" then post(request)
      when "DELETE" then @uploads.delete(request.query["uploadId"]) && ["204 No Content", {}, ""]
      end
    end

    def get(key)
      _, seconds, late = key.match(%r{\Alate/([\d.]+)/(.*)}).to_a
      sleep(Float(seconds)) if late
      body = late || @objects[key]
      return ["404 Not Found", {}, xml("<Error><Code>NoSuchKey</Code></Error>")] unless body

      ["200 OK", { "ETag" => tag(body) }, body]
    end

    def put(request)
      if (upload = request.query["uploadId"])
        @uploads.fetch(upload)[Integer(request.query["partNumber"])] = request.body
      else
        @objects[request.key] = request.body
      end
      ["200 OK", { "ETag" => tag(request.body) }, ""]
    end

    def post(request)
      upload = request.query["uploadId"]
      if upload
        @objects[request.key] = @uploads.delete(upload).sort.map(&:last).join
        return ["200 OK", {}, xml("<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")]
      end
      @uploads["upload #{request.key}"] = {}
      ["200 OK", {}, xml("<InitiateMultipartUploadResult><UploadId>upload #{request.key}</UploadId>" \
                         "</InitiateMultipartUploadResult>")]
    end

    def list(query)
      keys = @objects.keys.grep(/\A#{query["prefix"]}/).sort
      from = query["continuation-token"].to_i
      page = keys[from, PAGE]
      more = from + page.size < keys.size
      ["200 OK", {}, xml("<ListBucketResult><IsTruncated>#{more}</IsTruncated>" \
                         "#{"<NextContinuationToken>#{from + page.size}</NextContinuationToken>" if more}" \
                         "#{page.map { |key| "<Contents><Key>#{key}</Key></Contents>" }.join}</ListBucketResult>")]
    end

    def tag(body) = %("#{Digest::MD5.hexdigest(body)}")

    def xml(text) = %(<?xml version="1.0" encoding="UTF-8"?>#{text})
  end
end
