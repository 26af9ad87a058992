# frozen_string_literal: true

# Sends its page in parts.
class DashboardsController < ActionController::Base
  SERVICES = (1..10).to_h { |number| ["Service #{number}", number / 10.0] }.freeze
  prepend_view_path(File.join(__dir__, "views"))

  # The body is a lambda, which the server calls when it has sent the headers.
  def show
    view = view_context
    response.headers["content-type"] = "text/html; charset=utf-8"
    self.response_body = ->(stream) { stream_page(view, stream) }
  end

  private

  def stream_page(view, stream)
    stream.write(view.render(template: "dashboards/show"))
    stream.flush
    Heddle.each(SERVICES) do |name, seconds|
      answer = ask(name, seconds)
      stream.write(view.render(partial: "dashboards/part", locals: { answer: answer }))
      stream.flush
    end
  ensure
    stream.close
  end

  # Stands for a request to a service that takes this number of seconds.
  def ask(name, seconds)
    sleep(seconds)
    "#{name} has answered after #{seconds} s"
  end
end
