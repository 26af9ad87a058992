# frozen_string_literal: true

# bin/test: takes 12 s, 0.9 of a core

require_relative "../test_helper"
require "digest"
require "json"
require "openssl"
require "support/clients"
require "zlib"

# Calls that compute for a while in C. In Heddle.offload some let the other tasks run, as guides/clients.md says: they
# release Ruby's global lock. The calls that do not release it are here so that we learn when they begin to.
class ComputingTest < HeddleTest
  MISSING = %w[bcrypt argon2 ruby-vips].to_h { |name| [name, TestSupport::Clients.load(name)] }.freeze

  # FFI keeps a thread from its first callback on.
  FFI::Function.new(:void, []) { nil } if defined?(FFI)

  def bytes(size) = Random.new(1).bytes(size)

  # As many turns another task has only in the midst of a call: before it begins and when it has ended, Ruby may let
  # the other thread run, which then sleeps again.
  TURNS = 8

  # Lets another task take its turns while the block runs in a thread of the pool, and counts them.
  def turns_of_another_task(work)
    work.call # loads what it needs, and makes what it keeps
    Heddle.run do
      turns = 0
      Heddle.spawn(background: true) { loop { sleep(0.01) && turns += 1 } }
      yield(lambda do
        before = turns
        took = elapsed { Heddle.offload(&work) }

        assert_operator(took, :>, 0.1, "it must take longer to tell anything")
        turns - before
      end)
    end
  end

  # Once is enough: while a call keeps the lock, the ticks never reach this number.
  def assert_releases(&work)
    turns_of_another_task(work) { |count| wait_until("another task runs meanwhile") { count.call >= TURNS } }
  end

  def assert_keeps(&work)
    turns_of_another_task(work) do |count|
      assert_operator(count.call, :<, TURNS, "it releases Ruby's lock: correct guides/clients.md")
    end
  end

  # Skips without the gem.
  def need(name) = MISSING.fetch(name) && skip(MISSING.fetch(name))

  def test_bcrypt
    need("bcrypt")
    assert_releases { BCrypt::Password.create("secret", cost: 13) }
  end

  def test_argon2
    need("argon2")
    assert_releases { Argon2::Password.new(t_cost: 3, m_cost: 17).create("secret") }
  end

  def test_zlib
    data = bytes(15_000_000)
    assert_releases { Zlib.deflate(data) }
  end

  def test_a_new_rsa_key
    assert_releases { 3.times { OpenSSL::PKey::RSA.new(2048) } }
  end

  # With the library libvips (Debian's package libvips42).
  def test_vips
    need("ruby-vips")
    assert_releases { Vips::Image.gaussnoise(2000, 2000).gaussblur(10).avg }
  end

  def test_scrypt_and_pbkdf2
    assert_keeps { OpenSSL::KDF.scrypt("secret", salt: "salt" * 4, N: 2**16, r: 8, p: 1, length: 32) }
    assert_keeps { OpenSSL::KDF.pbkdf2_hmac("secret", salt: "salt", iterations: 800_000, length: 32, hash: "sha256") }
  end

  def test_digest
    data = bytes(100_000_000)
    assert_keeps { Digest::SHA512.hexdigest(data) }
  end

  def test_json
    text = JSON.generate(Array.new(600_000) { |number| { "id" => number, "name" => "somebody" } })
    assert_keeps { JSON.parse(text) }
  end

  # Who does not know which call it is lets Heddle say so.
  def test_heddle_stalls_names_the_line
    need("bcrypt")
    outcome = run_ruby(<<~RUBY, env: { "HEDDLE_STALLS" => "0.1" }, gems: true, options: ["-W0"])
      require "bcrypt"
      Heddle.run do
        Heddle.spawn(name: "login") { BCrypt::Password.create("secret", cost: 13) }
      end
    RUBY

    assert_match(/login.*bcrypt/m, outcome.err)
  end
end
