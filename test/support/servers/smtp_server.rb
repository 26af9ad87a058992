# frozen_string_literal: true

require "support/http_server"

module TestSupport
  # A small SMTP server on 127.0.0.1, of plain threads, with STARTTLS and AUTH PLAIN. A mail to "0.2@..." is taken after
  # 0.2 seconds, and its answer then ends with the subject.
  class SmtpServer < HttpServer
    private

    def serve(socket)
      socket.write("220 localhost ready\r\n")
      super
    end

    # @return [Boolean, nil] whether it goes on
    def respond(socket, _)
      line = socket.gets or return
      wait_for_the_end_of_a_pause
      case line
      when /\AEHLO/i then socket.write("250-localhost\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n")
      when /\ASTARTTLS/i then return start_tls(socket)
      when /\AAUTH PLAIN/i then socket.write("235 welcome\r\n")
      when /\ARCPT TO:<([\d.]+)@/i then (@seconds ||= {})[socket] = Float($1)
                                        socket.write("250 ok\r\n")
      when /\ADATA/i then return take_mail(socket)
      when /\AQUIT/i then return socket.write("221 bye\r\n") && nil
      else socket.write("250 ok\r\n")
      end
      true
    end

    def take_mail(socket)
      socket.write("354 go on\r\n")
      subject = nil
      while (line = socket.gets) && line != ".\r\n"
        subject ||= line[/\ASubject: (.*)\r/, 1]
      end
      return unless line # the client has gone

      sleep((@seconds ||= {}).delete(socket).to_f)
      socket.write("250 taken: #{subject}\r\n")
    end

    def start_tls(socket)
      socket.write("220 go on\r\n")
      secure = OpenSSL::SSL::SSLSocket.new(socket, Certificate.server_context).tap(&:accept)
      nil while respond(secure, 0)
    end
  end
end
