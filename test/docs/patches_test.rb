# frozen_string_literal: true

require_relative "../test_helper"

# guides/patches.md says of each patch what the register says.
class PatchesGuideTest < HeddleTest
  # name => text
  SECTIONS = File.read(File.expand_path("../../guides/patches.md", __dir__)).split(/^### (\w+)\n/).drop(1)
    .each_slice(2).to_h.transform_values { |text| text.split.join(" ") }

  def test_each_patch_has_its_section
    assert_equal(Heddle.patches.map { |patch| patch.name.to_s }, SECTIONS.keys)
  end

  def test_for_which_rubies_and_why
    Heddle.patches.each do |patch|
      text = SECTIONS.fetch(patch.name.to_s)
      rubies = patch.rubies == "all" ? "For all Rubies." : "For Ruby #{patch.rubies}."

      assert_includes(text, rubies, patch.name)
      assert_includes(text, patch.reason, patch.name)
      assert_equal(patch.bug.to_s, text[/Bug #(\d+)/, 1].to_s, patch.name)
    end
  end

  def test_each_method_is_named
    Heddle::CoreExt.replacements.each do |patch, owner, methods|
      next if methods.is_a?(Symbol)

      place = owner.singleton_class? ? "#{owner.attached_object}." : "#{owner}#"
      (methods.instance_methods(false) + methods.private_instance_methods(false)).each do |name|
        names = [name == :initialize ? "#{owner}.new" : "#{place}#{name}"]
        names << names[0].tr("#.", ".#") if names[0].match?(/\A(Kernel|Timeout)\b/)

        assert(names.any? { |one| SECTIONS.fetch(patch.name.to_s).include?("`#{one}`") }, "#{patch.name}: #{names[0]}")
      end
    end
  end
end
