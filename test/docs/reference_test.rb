# frozen_string_literal: true

# bin/test: takes 10 s, 0.8 of a core

require_relative "../test_helper"
require "cgi/escape"
require "support/api/public_api"

# The API reference (bin/rake doc) has all that is public, and nothing else, and every comment has its parts.
class ReferenceTest < HeddleTest
  API = TestSupport::PublicApi
  # Its name says it.
  PLAIN = "inspect"

  # The documents of methods.
  def documents = API.documented.select { |_, object| object.type == :method }

  def test_names_each_public_method
    assert_empty(API.methods.keys - documents.keys, "public, but not in the sources that .yardopts names")
    assert_empty(documents.keys - API.methods.keys, "described as public, but Ruby does not know it as such")
  end

  def test_says_what_each_is_for
    bare = API.documented.reject { |_, object| object.name.to_s == PLAIN || described?(object) }

    assert_empty(bare.map { |name, object| "#{name} (#{object.file}:#{object.line})" })
  end

  def test_has_the_type_of_each_parameter_and_value
    lacking = documents.flat_map do |name, object|
      object = object.tag(:overload) || object
      known = object.tags(:param).reject { |tag| tag.types.nil? }.map(&:name)
      lacking = parameters(object) - known
      lacking << "the value" unless object.tags(:return).any?(&:types) || object.name == :initialize
      lacking.map { |what| "#{name}: #{what}" }
    end

    assert_empty(lacking)
  end

  def test_is_one_command
    folder = tempdir
    outcome = run_command(File.join(ROOT, "bin/rake"), "doc[#{folder}]", env: { "HEDDLE_RUBY" => RbConfig.ruby })

    assert_predicate(outcome, :success?, outcome.out + outcome.err)
    assert_equal(documents.reject { |_, object| object.writer? }.keys.sort, described_in(folder))
    guides = Dir.glob("{,heddle-server/}guides/*.md", base: ROOT)
    guides.map! { |path| "file.#{File.basename(path, ".md")}.html" }

    assert_empty([*guides, "index.html"] - Dir.children(folder))
    assert_empty(dead_links(folder))
  end

  private

  def described?(object)
    return true if object.type == :method && object.constructor?

    !object.docstring.empty? || object.tags(:return).any? { |tag| !tag.text.to_s.empty? }
  end

  # Without the block, and without that of a method NAME=.
  def parameters(object)
    return [] if object.name.to_s.end_with?("=")

    object.parameters.map { |name,| name.to_s }.reject { |name| name.start_with?("&") }
      .map { |name| name.delete("*:") }.reject(&:empty?)
  end

  def dead_links(folder)
    Dir.glob("*.html", base: folder).flat_map do |page|
      links = File.read(File.join(folder, page)).scan(/<a [^>]*href="([^":]*)"/).flatten.uniq
      links.map { |link| link.split("#", 2) }.reject { |path, heading| leads_somewhere?(folder, page, path, heading) }
        .map { |link| "#{page}: #{link.join("#")}" }
    end
  end

  def leads_somewhere?(folder, page, path, heading)
    target = File.join(folder, path.to_s.empty? ? page : path)
    return true if ["", "#"].include?([path, heading].join) # is filled by the page's own program

    File.exist?(target) && (heading.to_s.empty? || File.read(target).include?(%( id="#{CGI.unescape(heading)}")))
  end

  # The names of the methods that the pages of the classes describe.
  def described_in(folder)
    Dir.glob("Heddle{.html,/**/*.html}", base: folder).flat_map do |page|
      owner = page.delete_suffix(".html").gsub("/", "::")
      File.read(File.join(folder, page)).scan(/<h3 class="signature[^"]*" id="([^"]+)-(class|instance)_method"/)
        .map { |name, kind| "#{owner}#{kind == "class" ? "." : "#"}#{CGI.unescapeHTML(name)}" }
    end.sort
  end
end
