# frozen_string_literal: true

class PagesController < ActionController::API
  around_action { |_, work| Time.use_zone(params[:zone], &work) }
  around_action { |_, work| I18n.with_locale(:de, &work) }

  # Ten HTTP calls and three queries at once, in a transaction.
  def show
    Current.user = params[:user]
    page = {}
    Visit.transaction do
      Visit.create!(name: params[:user])
      page = ask_all
      raise ActiveRecord::Rollback if params[:rollback]
    end
    render json: { **page, edition: Visit.edition }
  end

  def state
    stat = ActiveRecord::Base.connection_pool.stat # its own connection is not leased yet
    render json: { stat: stat, visits: Visit.order(:name).pluck(:name) }
  end

  private

  def ask_all
    Heddle.run do
      answers = Array.new(10) { |number| Heddle.spawn { get(number) } }
      rows = Array.new(3) { |number| Heddle.spawn { Visit.question(number) } }
      { answers: answers.map(&:value), rows: rows.map(&:value), block: here, task: Heddle.spawn { here }.value }
    end
  end

  def get(number)
    Net::HTTP.get("127.0.0.1", "/answer?number=#{number}&seconds=0.2", Integer(ENV.fetch("APP_HTTP")))
  end

  # The transaction of the request sees its own visit here.
  def here
    { user: Current.user, zone: Time.zone.name, locale: I18n.locale, own_visits: Visit.where(name: params[:user]).count,
      transaction: Visit.with_connection(&:transaction_open?) }
  end
end
