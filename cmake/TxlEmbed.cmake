# txl_embed(SOURCE FUNCTION FILES...): a source file SOURCE with every file's
# gzipped bytes in it, for embedded_file.h: `const std::vector<EmbeddedFile>&
# FUNCTION()`.
function(txl_embed SOURCE FUNCTION)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${FUNCTION})
  set(packed "")
  set(blocks "")
  set(entries "")
  set(index 0)
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    set(gz ${folder}/${name}.gz)
    add_custom_command(OUTPUT ${gz}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
      COMMAND gzip -9nc ${file} > ${gz}
      DEPENDS ${file} VERBATIM)
    list(APPEND packed ${gz})
    set(symbol txl_${FUNCTION}_${index})
    string(APPEND blocks "asm(\".section .rodata\\n\"\n"
      "    \".global ${symbol}\\n${symbol}:\\n.incbin \\\"${gz}\\\"\\n\"\n"
      "    \".global ${symbol}_end\\n${symbol}_end:\\n.byte 0\\n.previous\\n\");\n"
      "extern \"C\" const char ${symbol}[];\n"
      "extern \"C\" const char ${symbol}_end[];\n")
    string(APPEND entries "      {\"${name}\",\n"
      "       absl::string_view(${symbol}, ${symbol}_end - ${symbol})},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${SOURCE} CONTENT "// Made by cmake/TxlEmbed.cmake.
#include \"server/http/page.h\"

${blocks}
namespace txl {

const std::vector<EmbeddedFile>& ${FUNCTION}() {
  static const std::vector<EmbeddedFile> files = {
${entries}  };
  return files;
}

}  // namespace txl
" @ONLY)
  set_source_files_properties(${SOURCE} PROPERTIES OBJECT_DEPENDS "${packed}"
    SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
