# frozen_string_literal: true

require_relative "../../test_helper"

# The register of the patches: it is complete, and says how things are.
class RegisterTest < HeddleTest
  ROOT = File.expand_path("../../..", __dir__)

  def patches = Heddle.patches

  def names = patches.map { |patch| patch.name.to_s }

  def test_each_file_has_its_patch
    files = Dir.glob("lib/heddle/core_ext/*.rb", base: ROOT)

    assert_empty(files - patches.flat_map(&:files))
    assert_empty(patches.flat_map(&:files).reject { |file| File.file?(File.join(ROOT, file)) })
  end

  # Tests of more than one patch, or of what they are made with, are in common/.
  def test_each_patch_has_its_test
    assert_equal(patches.map(&:test).sort, Dir.glob("test/core_ext/*_test.rb", base: ROOT).sort)
  end

  # Whoever walks all modules asks each for its name.
  def test_modules_answer_what_every_module_answers
    name = Module.instance_method(:name)
    ours = ObjectSpace.each_object(Module).select { |one| name.bind_call(one)&.start_with?("Heddle") }

    assert_includes(ours, Heddle)
    ours.each do |one|
      %i[name to_s inspect hash].each { |method| assert_includes([0, -1], one.method(method).arity, [one, method]) }
    end
  end

  def test_entries
    assert_equal(names.uniq, names)
    patches.each do |patch|
      assert_match(/\A(all|3\.3( and 3\.4)?|4\.0 and newer)\z/, patch.rubies, patch.name)
      assert_match(/\A[A-Z].+\.\z/, patch.reason, patch.name)
      refute_empty(patch.files, patch.name)
    end
  end

  def test_state
    version = RUBY_VERSION[/\A\d+\.\d+/]
    patches.each do |patch|
      meant = patch.rubies == "all" || patch.rubies.include?(version) ||
              (patch.rubies.end_with?("newer") && ruby_at_least?(patch.rubies[/[\d.]+/]))

      assert_equal(meant ? :active : :not_needed, patch.state, patch.name)
      assert_equal(meant, patch.active?)
    end
    assert_equal("#<Heddle::Patch io_close: active>", patches.find { |patch| patch.name == :io_close }.inspect)
  end

  # The methods of Ruby that are replaced in a process that has had a scheduler.
  def test_each_replaced_method_belongs_to_one
    code = <<~'RUBY'
      places = [IO, File, Dir, Kernel, Process, Fiber, Thread, Thread::Mutex, Thread::Queue, Thread::ConditionVariable,
                Addrinfo, Socket, BasicSocket, IPSocket, TCPSocket, TCPServer, UDPSocket, UNIXSocket, UNIXServer,
                Timeout, Object, Module, Class, Exception, StandardError, Signal, Marshal, ObjectSpace, GC,
                Process::Status, Ractor]
      places = places.flat_map { |place| [place, place.singleton_class] }
      all = lambda do
        places.to_h do |place|
          names = place.instance_methods(false) + place.private_instance_methods(false)
          [place, names.to_h { |name| [name, place.instance_method(name)] }]
        end
      end
      before = all.call
      require "heddle"
      Heddle.run { nil }
      changed = all.call.flat_map do |place, methods|
        methods.filter_map do |name, method|
          [place.inspect, name.to_s] unless name.start_with?("__heddle_") || before[place][name] == method
        end
      end
      listed = Heddle::CoreExt.replacements.flat_map do |_, owner, methods|
        next [] if methods.is_a?(Symbol)
        names = methods.instance_methods(false) + methods.private_instance_methods(false)
        names.map { |name| [owner.inspect, name.to_s] }
      end
      puts((changed - listed).map { |one| "changed: #{one.join(" ")}" })
      puts((listed - changed).map { |one| "not changed: #{one.join(" ")}" })
    RUBY
    outcome = run_ruby(code, heddle: false, options: ["-rsocket", "-rtimeout"])
    # (It stands there for OpenSSL, which may be loaded later.)
    unlisted = ["changed: #<Class:StandardError> inherited"]

    assert_equal("", outcome.err)
    assert_equal(unlisted.sort, outcome.out.lines(chomp: true).uniq.sort)
  end

  def test_what_can_be_read_in_a_ractor
    code = <<~RUBY
      ractor = Ractor.new { Heddle.patches.count(&:active?) }
      print(ractor.respond_to?(:value) ? ractor.value : ractor.take)
    RUBY
    outcome = run_ruby(code, options: ["-W:no-experimental"])

    assert_equal(patches.count(&:active?).to_s, outcome.out)
  end
end
